/** Counts the deliveries in flight in one thread. A delivery that was given up does not count, and its late answer changes nothing. */
export class DeliveryCount {
  count = 0
  /** Deliveries that were given up and not answered. */
  readonly #abandoned = new Set<number>()

  sent(): void {
    this.count++
  }

  /** Gives a delivery up: a handler that never ends must not use up the thread's room for events. */
  abandon(deliveryId: number): void {
    this.#abandoned.add(deliveryId)
    this.count--
  }

  answered(deliveryId: number): void {
    if (this.#abandoned.size === 0 || !this.#abandoned.delete(deliveryId)) this.count--
  }
}
