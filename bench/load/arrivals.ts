const MS_PER_SEC = 1000

/** The times at which requests of a fixed rate are due, evenly spaced. */
export class Arrivals {
  readonly #startMs: number
  readonly #intervalMs: number
  readonly #endMs: number
  #taken = 0

  /** The first request is due at `startMs`, the last one before `endMs`. */
  constructor(perSec: number, startMs: number, endMs: number) {
    this.#intervalMs = MS_PER_SEC / perSec
    this.#startMs = startMs
    this.#endMs = endMs
  }

  /** When the next request is due; infinite after the last. */
  get nextMs(): number {
    const dueMs = this.#startMs + this.#taken * this.#intervalMs
    return dueMs < this.#endMs ? dueMs : Number.POSITIVE_INFINITY
  }

  /** Takes the next request. @returns when it was due */
  take(): number {
    const dueMs = this.nextMs
    this.#taken++
    return dueMs
  }
}
