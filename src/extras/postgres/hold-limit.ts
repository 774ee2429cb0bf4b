/** However often transactions collide, so many run at a time: one may have to wait for another process. */
const MIN = 2

/**
 * How many connections of a thread may be kept for transactions at a time: fewer while transactions collide, since of those that want
 * the same rows all but one are run in vain. Halved by each collision, one more after as many have come through as may run now.
 */
export class HoldLimit {
  readonly #max: number
  /** Not a whole number. */
  #limit: number
  #held = 0

  constructor(max: number) {
    this.#max = max
    this.#limit = max
  }

  /** How many more may be kept. */
  get room(): number {
    return Math.max(0, Math.floor(this.#limit) - this.#held)
  }

  take(): void {
    this.#held++
  }

  give(): void {
    this.#held--
  }

  collided(): void {
    this.#limit = Math.max(Math.min(MIN, this.#max), this.#limit / 2)
  }

  cameThrough(): void {
    if (this.#limit < this.#max) this.#limit = Math.min(this.#max, this.#limit + 1 / this.#limit)
  }
}
