/** At least so many transactions may run at a time, however often they conflict: one of them may be waiting for another process. */
const MIN = 2

/**
 * How many connections of a thread may be held by transactions at a time. There are fewer while transactions conflict, because all but
 * one of those that want the same rows run for nothing. Each conflict halves the limit; it rises by one after as many have succeeded
 * as may run at a time.
 */
export class TransactionLimit {
  readonly #max: number
  /** A fraction; rounded down it is the limit. */
  #limit: number
  #held = 0

  constructor(max: number) {
    this.#max = max
    this.#limit = max
  }

  /** How many more connections may be held. */
  get room(): number {
    return Math.max(0, Math.floor(this.#limit) - this.#held)
  }

  take(): void {
    this.#held++
  }

  give(): void {
    this.#held--
  }

  conflicted(): void {
    this.#limit = Math.max(Math.min(MIN, this.#max), this.#limit / 2)
  }

  succeeded(): void {
    if (this.#limit < this.#max) this.#limit = Math.min(this.#max, this.#limit + 1 / this.#limit)
  }
}
