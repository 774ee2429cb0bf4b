import type { WireError } from '../core/errors/wire.ts'
import type { DeliverySink } from '../runtime/events/event-server.ts'
import { acknowledgementBytes, writeAcknowledgements } from '../transport/frames/acknowledgement-frame.ts'
import { KIND } from '../transport/frames/frame-kinds.ts'
import type { Outbox } from '../transport/rings/outbox.ts'

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** Acknowledgements that go out in one frame at most. */
const ACKS_PER_FRAME = 4096

/** Sends the answers to the hub's deliveries, over the ring. */
export class RingAcknowledgements implements DeliverySink {
  readonly #outbox: Outbox
  readonly #ids: number[] = []
  #isScheduled = false

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  /** Acknowledgements of one turn of the loop go out together. */
  delivered(deliveryId: number): void {
    this.#ids.push(deliveryId)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#send)
  }

  reply(deliveryId: number, json: string): void {
    this.#outbox.answerText(KIND.DELIVERY_REPLY, deliveryId, json)
  }

  failed(deliveryId: number, error: WireError): void {
    this.#outbox.answerText(KIND.DELIVERY_FAILED, deliveryId, toJson(error))
  }

  readonly #send = (): void => {
    this.#isScheduled = false
    for (let from = 0; from < this.#ids.length; from += ACKS_PER_FRAME) {
      const count = Math.min(ACKS_PER_FRAME, this.#ids.length - from)
      const bytes = acknowledgementBytes(count)
      const at = this.#outbox.begin(bytes, true, true)
      writeAcknowledgements(this.#outbox, at, this.#ids, from, count)
      this.#outbox.end(bytes, KIND.DELIVERED, 0)
    }
    this.#ids.length = 0
  }
}
