/** A first-in, first-out queue. Adding and removing take the same time however long it is. */
export class Fifo<T> {
  #items: (T | undefined)[] = []
  #first = 0

  get size(): number {
    return this.#items.length - this.#first
  }

  push(item: T): void {
    this.#items.push(item)
  }

  /** Puts an item before all others. */
  unshift(item: T): void {
    if (this.#first > 0) this.#items[--this.#first] = item
    else this.#items.unshift(item)
  }

  peek(): T | undefined {
    return this.#items[this.#first]
  }

  find(wanted: (item: T) => boolean): T | undefined {
    for (let n = this.#first; n < this.#items.length; n++) if (wanted(this.#items[n]!)) return this.#items[n]
    return undefined
  }

  /** Takes out the matching items. */
  takeIf(isWanted: (item: T) => boolean): T[] {
    const taken: T[] = []
    for (let left = this.size; left > 0; left--) {
      const next = this.shift()!
      if (isWanted(next)) taken.push(next)
      else this.push(next)
    }
    return taken
  }

  *[Symbol.iterator](): Generator<T> {
    for (let n = this.#first; n < this.#items.length; n++) yield this.#items[n]!
  }

  shift(): T | undefined {
    if (this.size === 0) return undefined
    const item = this.#items[this.#first]
    this.#items[this.#first++] = undefined
    if (this.#first >= 1024 && this.#first * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#first)
      this.#first = 0
    }
    return item
  }
}
