import { Fifo } from '../../core/collections/fifo.ts'
import type { Delivery } from './consumer.ts'

/** Lets deliveries of one key begin one after another. A delivery without a key begins at once. */
export class KeyOrder {
  readonly #begin: (delivery: Delivery) => void
  /** Deliveries whose turn has come. Empty except while `#advance` runs. */
  readonly #advancing: Delivery[] = []

  constructor(begin: (delivery: Delivery) => void) {
    this.#begin = begin
  }

  /** Begins a delivery, after those of the same key if there are any. */
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

  /** Begins the next delivery of the same key, if there is one. */
  finished({ event: { key }, queue: { keyed } }: Delivery): void {
    if (key === null) return
    const next = keyed.get(key)?.shift()
    if (next === undefined) keyed.delete(key)
    else this.#advance(next)
  }

  /** In a loop and not by recursion: a queue of expired events of one key would overflow the stack. */
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
