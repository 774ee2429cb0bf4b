import { Fifo } from '../../core/collections/fifo.ts'

/** Positions of events that wait in the log, in their order, each once. */
export class PositionQueue {
  #order = new Fifo<number>()
  readonly #members = new Set<number>()

  get size(): number {
    return this.#members.size
  }

  has(position: number): boolean {
    return this.#members.has(position)
  }

  push(position: number): void {
    if (this.#members.has(position)) return
    this.#members.add(position)
    this.#order.push(position)
  }

  /** Takes out the first ones. @param most how many */
  take(most: number): number[] {
    const taken: number[] = []
    while (taken.length < most && this.size > 0) {
      const position = this.#order.shift()!
      this.#members.delete(position)
      taken.push(position)
    }
    return taken
  }

  /** All, in their order. */
  list(): number[] {
    return [...this.#order]
  }

  remove(positions: ReadonlySet<number>): void {
    const left = this.list().filter((position) => !positions.has(position))
    this.#order = new Fifo()
    for (const position of left) this.#order.push(position)
    for (const position of positions) this.#members.delete(position)
  }

  /** Puts back what `take` has taken out. */
  putBack(positions: readonly number[]): void {
    for (const position of positions.toReversed()) {
      if (this.#members.has(position)) continue
      this.#members.add(position)
      this.#order.unshift(position)
    }
  }

  /** Adds positions, and puts all into the order of their numbers. */
  merge(positions: Iterable<number>): void {
    const all = [...this.take(this.size), ...positions].sort((a, b) => a - b)
    for (const position of all) this.push(position)
  }

  /** Puts those first that are named, in the order in which they are. */
  arrange(positions: readonly number[]): void {
    const all = this.take(this.size)
    const known = new Set(all)
    for (const position of positions) if (known.has(position)) this.push(position)
    for (const position of all) this.push(position)
  }
}
