import type { Delivery, Seat } from './consumer.ts'
import { Fifo } from './fifo.ts'

/**
 * Deliveries that were in flight when a lane died. They are tried again one at a time, in a lane of their own:
 * the next death there has one cause, and no neighbour is suspected with it.
 */
export class Quarantine {
  readonly #waiting = new Fifo<Delivery>()
  readonly #send: (delivery: Delivery, seat: Seat) => boolean
  readonly #drop: (delivery: Delivery) => void
  readonly #onWanted: (isWanted: boolean) => void
  #current: Delivery | null = null
  #isWanted = false

  /**
   * @param send gives a delivery to a seat; false when it did not take it
   * @param drop takes one whose subscriber has left for good
   * @param onWanted told when the lane is needed, and when it is no more
   */
  constructor(
    send: (delivery: Delivery, seat: Seat) => boolean,
    drop: (delivery: Delivery) => void,
    onWanted: (isWanted: boolean) => void,
  ) {
    this.#send = send
    this.#drop = drop
    this.#onWanted = onWanted
  }

  /** True while there are suspects. */
  get isWanted(): boolean {
    return this.#isWanted
  }

  add(delivery: Delivery): void {
    this.#waiting.push(delivery)
    this.pump()
  }

  /** A delivery is not under way any more. */
  ended(delivery: Delivery): void {
    if (delivery === this.#current) this.#current = null
  }

  /** Sends the next one that can be sent, when none is under way. Those whose subscriber is not there wait and let others pass. */
  pump(): void {
    for (let left = this.#waiting.size; left > 0 && this.#current === null; left--) {
      const delivery = this.#waiting.shift()!
      if (!this.#try(delivery)) this.#waiting.push(delivery)
    }
    const isWanted = this.#current !== null || this.#waiting.size > 0
    if (isWanted === this.#isWanted) return
    this.#isWanted = isWanted
    this.#onWanted(isWanted)
  }

  #try(delivery: Delivery): boolean {
    if (delivery.consumer.isGone) {
      this.#drop(delivery)
      return true
    }
    const seat = delivery.consumer.quarantineSeats.find(({ host, isPaused }) => host.hasRoom && !isPaused)
    if (seat === undefined) return false
    this.#current = delivery
    if (this.#send(delivery, seat)) return true
    this.#current = null
    return false
  }
}
