// The second argument of a subscriber.
import type { EventMeta } from '../../contracts/event-bus.ts'
import { isoTimestamp } from '../../core/causality/ids.ts'
import { type EventFrame, WANTS_REPLY } from '../../transport/frames/event-frame.ts'
import { Claim } from './claim.ts'

/** Shortest interval between two heartbeats that leave the thread, milliseconds. */
const BEAT_MS = 100

/** What a handler reports. */
export interface HandlerReport {
  /** @throws EVENT_OPTIONS_INVALID */
  progress(done: number, of: number, note: string | undefined): void
  /** @throws EVENT_PAYLOAD_INVALID, EVENT_PAYLOAD_TOO_LARGE */
  emit(chunk: unknown): void
  /** The handler has returned. Resolves when everything is written. @param resultMs how long it is kept; undefined: the default */
  end(value: unknown, resultMs: number | undefined): Promise<void>
  /** The handler has failed. Resolves when what it has reported is written. */
  failed(): Promise<void>
}

/** What a handler may ask of its thread. */
export interface DeliveryPort {
  /** Tells the hub that it still works. */
  heartbeat(deliveryId: number): void
  /** @throws EVENT_BUS_UNAVAILABLE, EVENT_OPTIONS_INVALID where nothing can be reported */
  reportOf(event: DeliveredEvent): HandlerReport
}

export class DeliveredEvent extends Claim implements EventMeta {
  readonly id: string
  readonly parent_id: string | null
  readonly event: string
  readonly emitter: string
  readonly timestamp: string
  readonly request_id: string | null
  readonly attempt: number
  readonly #deliveryId: number
  readonly #subscriber: number
  readonly #port: DeliveryPort
  #beatMs = Number.NEGATIVE_INFINITY
  #report: HandlerReport | null = null

  constructor(frame: EventFrame, deliveryId: number, port: DeliveryPort) {
    super()
    this.id = frame.id
    this.parent_id = frame.parentId
    this.event = frame.event
    this.emitter = frame.emitter
    this.timestamp = isoTimestamp(frame.timestampMs)
    this.request_id = frame.requestId
    this.attempt = frame.attempt & (WANTS_REPLY - 1)
    this.#deliveryId = deliveryId
    this.#subscriber = frame.subscriber
    this.#port = port
  }

  protected get what(): string {
    return this.event
  }

  /** Its subscriber's number in the thread. */
  static subscriberOf(event: DeliveredEvent): number {
    return event.#subscriber
  }

  /** What its handler has reported; null: nothing. */
  static reportOf(event: DeliveredEvent): HandlerReport | null {
    return event.#report
  }

  /** The same, made if there is none. */
  static requireReport(event: DeliveredEvent): HandlerReport {
    event.#report ??= event.#port.reportOf(event)
    return event.#report
  }

  heartbeat(): void {
    this.requireOwn()
    if (this.isOver || performance.now() - this.#beatMs < BEAT_MS) return
    this.#beatMs = performance.now()
    this.#port.heartbeat(this.#deliveryId)
  }

  progress(done: number, of: number, note?: string): void {
    this.requireOwn()
    if (!this.isOver) DeliveredEvent.requireReport(this).progress(done, of, note)
  }

  emit(chunk: unknown): void {
    this.requireOwn()
    if (!this.isOver) DeliveredEvent.requireReport(this).emit(chunk)
  }
}
