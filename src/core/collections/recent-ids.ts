// Remembers the ids of the last events.
/** Number of the last ids that are known for certain. */
const RECENT_MAX = 1000

/** Recent ids: the last RECENT_MAX, and up to as many before them. Two sets cost a quarter of a map that drops its oldest entry. */
export class RecentIds {
  #young = new Set<string>()
  #old = new Set<string>()

  /** @returns false for an id that came before */
  add(id: string): boolean {
    if (this.#young.has(id) || this.#old.has(id)) return false
    if (this.#young.size >= RECENT_MAX) {
      this.#old = this.#young
      this.#young = new Set()
    }
    this.#young.add(id)
    return true
  }
}
