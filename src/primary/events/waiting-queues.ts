import type { Consumer, Delivery, DeliveryQueue } from './consumer.ts'

/** The queues with deliveries that wait for room. */
export class WaitingQueues {
  readonly #queues = new Set<DeliveryQueue>()

  get isEmpty(): boolean {
    return this.#queues.size === 0
  }

  push(delivery: Delivery): void {
    delivery.queue.waiting.push(delivery)
    this.#queues.add(delivery.queue)
  }

  /** Puts a delivery before those that wait already. */
  unshift(delivery: Delivery): void {
    delivery.queue.waiting.unshift(delivery)
    this.#queues.add(delivery.queue)
  }

  /** Takes out the deliveries for which this holds. */
  takeIf(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken: Delivery[] = []
    for (const queue of this.#queues) {
      for (let left = queue.waiting.size; left > 0; left--) {
        const next = queue.waiting.shift()!
        if (isWanted(next)) taken.push(next)
        else queue.waiting.push(next)
      }
      if (queue.waiting.size === 0) this.#queues.delete(queue)
    }
    return taken
  }

  /** Takes out all deliveries that wait for one consumer. */
  takeOf(consumer: Consumer): Delivery[] {
    const taken: Delivery[] = []
    for (const queue of this.#queues) {
      if (queue.consumer !== consumer) continue
      this.#queues.delete(queue)
      for (let next = queue.waiting.shift(); next !== undefined; next = queue.waiting.shift()) taken.push(next)
    }
    return taken
  }

  /** Offers the deliveries queue by queue, in their order. @param dispatch returns false when there is no room for one */
  pump(dispatch: (delivery: Delivery) => boolean): void {
    for (const queue of this.#queues) {
      const { waiting } = queue
      while (waiting.size > 0 && dispatch(waiting.peek()!)) waiting.shift()
      if (waiting.size === 0) this.#queues.delete(queue)
    }
  }
}
