import { Fifo } from '../core/collections/fifo.ts'
import { HeddleError } from '../core/errors/catalogue.ts'
import { fromWire, type WireError } from '../core/errors/wire.ts'
import { type EventFrame, eventMaxBytes, writeEvent } from '../transport/frames/event-frame.ts'
import { KIND } from '../transport/frames/frame-kinds.ts'
import type { Outbox } from '../transport/rings/outbox.ts'
import type { Publisher } from './event-bus.ts'

interface Publishing {
  seq: number
  id: string
  resolve: (id: string) => void
  reject: (error: Error) => void
  isRefused: boolean
}

/** Publishes events to the hub, over the ring. */
export class RingPublisher implements Publisher {
  readonly #outbox: Outbox
  /** Publications that are sent and not answered, in their order. */
  readonly #publishing = new Fifo<Publishing>()
  #seq = 0

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  publish(frame: EventFrame): Promise<string> {
    const outbox = this.#outbox
    const at = outbox.begin(eventMaxBytes(frame, 'text'), true)
    if (at < 0) throw new HeddleError('EVENT_BUS_FULL', 'Too many events wait to leave this lane')
    const seq = this.#seq
    this.#seq = (seq + 1) & 0x7fffffff
    outbox.end(writeEvent(outbox, at, frame, 'text'), KIND.PUBLISH, seq)
    return new Promise((resolve, reject) => {
      this.#publishing.push({ seq, id: frame.id, resolve, reject, isRefused: false })
    })
  }

  /** Hands on an event that is stored. It is never refused, and not answered. */
  handOn(frame: EventFrame): void {
    const outbox = this.#outbox
    const at = outbox.begin(eventMaxBytes(frame, 'text'), true, true)
    if (at >= 0) outbox.end(writeEvent(outbox, at, frame, 'text'), KIND.STORED, 0)
  }

  /** The hub has everything up to `seq`, except what it refused. */
  accepted(seq: number): void {
    for (;;) {
      const next = this.#publishing.peek()
      // Sequence numbers wrap: compare by distance.
      if (next === undefined || ((seq - next.seq) & 0x7fffffff) > 0x3fffffff) return
      this.#publishing.shift()
      if (!next.isRefused) next.resolve(next.id)
    }
  }

  refused(seq: number, error: WireError): void {
    const publishing = this.#publishing.find((each) => each.seq === seq)
    if (publishing === undefined) return
    publishing.isRefused = true
    publishing.reject(fromWire(error))
  }
}
