/** A map of at most so many entries: the one that was used longest ago goes for a new one. */
export class RecentlyUsed<Key, Value> {
  readonly #max: number
  readonly #entries = new Map<Key, Value>()

  constructor(max: number) {
    this.#max = max
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    // Moving it to the end costs more than the look-up, so it is done only when the map is more than half full.
    if (value !== undefined && this.#entries.size > this.#max / 2) {
      this.#entries.delete(key)
      this.#entries.set(key, value)
    }
    return value
  }

  /** @param key of no entry @returns the key that went; undefined when none had to */
  add(key: Key, value: Value): Key | undefined {
    const gone = this.#entries.size < this.#max ? undefined : this.#entries.keys().next().value
    if (gone !== undefined) this.#entries.delete(gone)
    this.#entries.set(key, value)
    return gone
  }

  /** Takes all out. @returns their keys */
  clear(): Key[] {
    const keys = [...this.#entries.keys()]
    this.#entries.clear()
    return keys
  }
}
