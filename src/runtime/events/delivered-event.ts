// The second argument of a subscriber.
import type { EventMeta } from '../../contracts/event-bus.ts'
import { isoTimestamp } from '../../core/causality/ids.ts'
import { type EventFrame, WANTS_REPLY } from '../../transport/frames/event-frame.ts'
import { Claim } from './claim.ts'

/** Shortest interval between two heartbeats that leave the thread, milliseconds. */
const BEAT_MS = 100

export class DeliveredEvent extends Claim implements EventMeta {
  readonly id: string
  readonly parent_id: string | null
  readonly event: string
  readonly emitter: string
  readonly timestamp: string
  readonly request_id: string | null
  readonly attempt: number
  #beatMs = Number.NEGATIVE_INFINITY
  readonly #beat: () => void

  /** @param beat tells the hub that its handler still works */
  constructor(frame: EventFrame, beat: () => void) {
    super()
    this.id = frame.id
    this.parent_id = frame.parentId
    this.event = frame.event
    this.emitter = frame.emitter
    this.timestamp = isoTimestamp(frame.timestampMs)
    this.request_id = frame.requestId
    this.attempt = frame.attempt & (WANTS_REPLY - 1)
    this.#beat = beat
  }

  protected get what(): string {
    return this.event
  }

  heartbeat(): void {
    this.requireOwn()
    if (this.isOver || performance.now() - this.#beatMs < BEAT_MS) return
    this.#beatMs = performance.now()
    this.#beat()
  }
}
