/** Counts deaths within a sliding window of time. */
export class DeathWindow {
  readonly #windowMs: number
  #deathsMs: number[] = []

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** Deaths within the window that ended with the last one. */
  get size(): number {
    return this.#deathsMs.length
  }

  /** Deaths within the window that ends now. */
  count(nowMs: number): number {
    return this.#recent(nowMs).length
  }

  add(nowMs: number): void {
    this.#deathsMs = [...this.#recent(nowMs), nowMs]
  }

  clear(): void {
    this.#deathsMs = []
  }

  #recent(nowMs: number): number[] {
    return this.#deathsMs.filter((atMs) => nowMs - atMs < this.#windowMs)
  }
}
