/** Says when it is time to log the same trouble once more. */
export class Reminder {
  readonly #everyMs: number
  readonly #lastMs = new Map<string, number>()

  /** @param everyMs one trouble is logged at most once in this time */
  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  /** True when this trouble was not logged in that time; whoever asks logs it now. */
  isDue(trouble = ''): boolean {
    const nowMs = performance.now()
    const lastMs = this.#lastMs.get(trouble)
    if (lastMs !== undefined && nowMs - lastMs < this.#everyMs) return false
    this.#lastMs.set(trouble, nowMs)
    return true
  }
}
