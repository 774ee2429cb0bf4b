import { type EventFrame, eventMaxBytes, writeEvent } from '../transport/frames/event-frame.ts'
import { KIND } from '../transport/frames/frame-kinds.ts'
import type { Outbox } from '../transport/rings/outbox.ts'

/** Reports events that streams carry to the primary, over the ring: for the trace there, without their payloads. */
export class RingRecords {
  readonly #outbox: Outbox

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  published(frame: EventFrame): void {
    this.#send(frame, 0)
  }

  received(frame: EventFrame): void {
    this.#send(frame, 1)
  }

  /** Dropped where there is no room. The primary need not be woken for it. */
  #send(frame: EventFrame, isReceived: 0 | 1): void {
    const { payload } = frame
    frame.payload = ''
    const outbox = this.#outbox
    const at = outbox.begin(eventMaxBytes(frame, 'bytes'), true)
    if (at >= 0) outbox.end(writeEvent(outbox, at, frame, 'bytes'), KIND.RECORD, isReceived, false)
    frame.payload = payload
  }
}
