/** What is due at some time: a binary heap, in two flat arrays of numbers, 16 bytes an item. */
export class TimeHeap {
  readonly #dueMs: number[] = []
  readonly #items: number[] = []

  get size(): number {
    return this.#items.length
  }

  /** When the first item is due, milliseconds; infinity when there is none. */
  get firstMs(): number {
    return this.#dueMs[0] ?? Number.POSITIVE_INFINITY
  }

  /** @param item a number; of two that are due at the same time the smaller one comes first */
  push(dueMs: number, item: number): void {
    let at = this.#items.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(dueMs, item, parent)) break
      this.#move(parent, at)
      at = parent
    }
    this.#dueMs[at] = dueMs
    this.#items[at] = item
  }

  /** Removes the first item. @returns undefined when there is none */
  shift(): number | undefined {
    const first = this.#items[0]
    const dueMs = this.#dueMs.pop()
    const item = this.#items.pop()
    const { size } = this
    if (dueMs === undefined || item === undefined || size === 0) return first
    let at = 0
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && this.#isBefore(this.#dueMs[child + 1]!, this.#items[child + 1]!, child)) child++
      if (this.#isBefore(dueMs, item, child)) break
      this.#move(child, at)
      at = child
    }
    this.#dueMs[at] = dueMs
    this.#items[at] = item
    return first
  }

  #isBefore(dueMs: number, item: number, other: number): boolean {
    const otherMs = this.#dueMs[other]!
    return dueMs < otherMs || (dueMs === otherMs && item < this.#items[other]!)
  }

  #move(from: number, to: number): void {
    this.#dueMs[to] = this.#dueMs[from]!
    this.#items[to] = this.#items[from]!
  }
}
