import type { Clock, Timer } from '../../core/schedule/clock.ts'
import type { Delivery } from './consumer.ts'

/** Deliveries that wait for their time: delayed ones, and those between two attempts. */
export class DelayQueue {
  readonly #clock: Clock
  readonly #timers = new Set<Timer>()
  /** Deliveries between two attempts that somebody else has too: a broker, or the durable log. */
  readonly #retries = new Set<Delivery>()
  #isReturning = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** True when what waits here goes back to where it came from. */
  get isReturning(): boolean {
    return this.#isReturning
  }

  /** Waits for the first attempt. The durable log and the brokers keep their own until they are due. */
  delayFirst(delivery: Delivery, delayMs: number, begin: (delivery: Delivery) => void): void {
    this.#delay(delayMs, () => begin(delivery))
  }

  /**
   * Waits for the next attempt.
   * @returns false when the delivery goes back to where it came from, since this process ends
   */
  delayRetry(delivery: Delivery, delayMs: number, again: (delivery: Delivery) => void): boolean {
    if (delivery.source === null) {
      this.#delay(delayMs, () => again(delivery))
      return true
    }
    if (this.#isReturning) return false
    this.#retries.add(delivery)
    this.#delay(delayMs, () => {
      if (this.#retries.delete(delivery)) again(delivery)
    })
    return true
  }

  #delay(delayMs: number, run: () => void): void {
    const timer = this.#clock.after(delayMs, () => {
      this.#timers.delete(timer)
      run()
    })
    this.#timers.add(timer)
  }

  /** Takes out the deliveries that somebody else has too. From now on none is delayed here between two attempts. */
  takeReturnable(): Delivery[] {
    this.#isReturning = true
    const taken = [...this.#retries]
    this.#retries.clear()
    return taken
  }

  /** Takes out the retries for which this holds, of the deliveries that somebody else has too. */
  takeIf(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken = [...this.#retries].filter(isWanted)
    for (const delivery of taken) this.#retries.delete(delivery)
    return taken
  }

  close(): void {
    for (const timer of this.#timers) this.#clock.cancel(timer)
  }
}
