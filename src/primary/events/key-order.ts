import { Fifo } from '../../core/collections/fifo.ts'
import type { Delivery } from './consumer.ts'

/** Lets deliveries of one key begin one after another; what has no key begins at once. */
export class KeyOrder {
  readonly #begin: (delivery: Delivery) => void
  /** Those whose turn has come behind their key. Empty but while `#advance` runs. */
  readonly #advancing: Delivery[] = []

  constructor(begin: (delivery: Delivery) => void) {
    this.#begin = begin
  }

  /** Behind those of the same key, if there are any. */
  admit(delivery: Delivery): void {
    const { key } = delivery.event
    if (key !== null) {
      const { keyed } = delivery.queue
      const behind = keyed.get(key)
      if (behind !== undefined) {
        behind.push(delivery)
        return
      }
      keyed.set(key, new Fifo())
    }
    this.#begin(delivery)
  }

  /** The next one of its key, if there is one, begins. */
  finished({ event: { key }, queue: { keyed } }: Delivery): void {
    if (key === null) return
    const next = keyed.get(key)?.shift()
    if (next === undefined) keyed.delete(key)
    else this.#advance(next)
  }

  /** One after another, never one inside the other: a queue of expired events of one key would overflow the stack. */
  #advance(next: Delivery): void {
    this.#advancing.push(next)
    if (this.#advancing.length > 1) return
    try {
      for (let n = 0; n < this.#advancing.length; n++) this.#begin(this.#advancing[n]!)
    } finally {
      this.#advancing.length = 0
    }
  }
}
