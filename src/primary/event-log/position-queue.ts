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

  shift(): number | undefined {
    const position = this.#order.shift()
    if (position !== undefined) this.#members.delete(position)
    return position
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

  unshift(position: number): void {
    this.#members.add(position)
    this.#order.unshift(position)
  }
}
