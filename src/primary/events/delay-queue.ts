import type { Delivery } from './consumer.ts'

/** Deliveries that wait for their time: delayed ones, and those between two attempts. */
export class DelayQueue {
  readonly #timers = new Set<NodeJS.Timeout>()
  /** A broker's deliveries between two attempts. */
  readonly #brokerRetries = new Set<Delivery>()
  #isReturning = false

  /** True when brokers get back what waits here. */
  get isReturning(): boolean {
    return this.#isReturning
  }

  delay(delayMs: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      run()
    }, delayMs)
    this.#timers.add(timer)
  }

  /**
   * Waits for the next attempt.
   * @returns false when the delivery goes back to its broker, since this process ends
   */
  delayRetry(delivery: Delivery, delayMs: number, again: (delivery: Delivery) => void): boolean {
    if (delivery.source === null) this.delay(delayMs, () => again(delivery))
    else {
      if (this.#isReturning) return false
      this.#brokerRetries.add(delivery)
      this.delay(delayMs, () => {
        if (this.#brokerRetries.delete(delivery)) again(delivery)
      })
    }
    return true
  }

  /** Takes out the deliveries of brokers. From now on none is delayed here any more. */
  takeBrokerDeliveries(): Delivery[] {
    this.#isReturning = true
    const taken = [...this.#brokerRetries]
    this.#brokerRetries.clear()
    return taken
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer)
  }
}
