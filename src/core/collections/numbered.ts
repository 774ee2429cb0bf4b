// Items under rising numbers.

const FIRST_SLOTS = 1024
const MOST_SLOTS = 1 << 16

/**
 * Items under numbers that rise: each gets the next number, and most are taken out soon. It takes the place of a Map, which makes a new table
 * again and again when many come and go. V8 links each old table to the next one, so that one old table which has outlived two scavenges
 * keeps all later ones with everything that was ever in them, until the next full collection.
 *
 * The latest items stand in slots, at their number modulo the number of slots; one that is in the way of a later one moves into a Map.
 */
export class Numbered<T> {
  /** Numbers of the items in the slots, or -1. */
  #numbers: number[] = new Array(FIRST_SLOTS).fill(-1)
  #items: (T | undefined)[] = new Array(FIRST_SLOTS).fill(undefined)
  readonly #late = new Map<number, T>()
  #size = 0

  get size(): number {
    return this.#size
  }

  get(number: number): T | undefined {
    const slot = number & (this.#numbers.length - 1)
    if (this.#numbers[slot] === number) return this.#items[slot]
    return this.#late.size === 0 ? undefined : this.#late.get(number)
  }

  /** @param number an integer that is not negative */
  set(number: number, item: T): void {
    if (this.#late.size > 0 && this.#late.has(number)) {
      this.#late.set(number, item)
      return
    }
    const slot = number & (this.#numbers.length - 1)
    const other = this.#numbers[slot]!
    if (other === number) {
      this.#items[slot] = item
      return
    }
    this.#size++
    if (other !== -1) {
      if (this.#size * 2 > this.#numbers.length && this.#numbers.length < MOST_SLOTS) {
        this.#grow()
        this.#place(number, item)
        return
      }
      this.#late.set(other, this.#items[slot]!)
    }
    this.#numbers[slot] = number
    this.#items[slot] = item
  }

  /** Takes an item out. @returns undefined when there is none */
  take(number: number): T | undefined {
    const item = this.get(number)
    if (item === undefined) return undefined
    this.#size--
    const slot = number & (this.#numbers.length - 1)
    if (this.#numbers[slot] === number) {
      this.#numbers[slot] = -1
      this.#items[slot] = undefined
    } else this.#late.delete(number)
    return item
  }

  /** The numbers of all items, the lowest first. */
  numbers(): number[] {
    if (this.#size === 0) return []
    return [...this.#late.keys(), ...this.#numbers.filter((number) => number !== -1)].sort((a, b) => a - b)
  }

  /** All items, by their numbers. */
  items(): T[] {
    return this.numbers().map((number) => this.get(number)!)
  }

  #grow(): void {
    const [numbers, items] = [this.#numbers, this.#items]
    this.#numbers = new Array(numbers.length * 2).fill(-1)
    this.#items = new Array(numbers.length * 2).fill(undefined)
    for (let slot = 0; slot < numbers.length; slot++)
      if (numbers[slot] !== -1) this.#place(numbers[slot]!, items[slot]!)
  }

  #place(number: number, item: T): void {
    const slot = number & (this.#numbers.length - 1)
    const other = this.#numbers[slot]!
    if (other !== -1) this.#late.set(other, this.#items[slot]!)
    this.#numbers[slot] = number
    this.#items[slot] = item
  }
}
