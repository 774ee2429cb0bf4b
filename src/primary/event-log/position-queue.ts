/** Positions of events that wait in the log, in their order, each once. */
export class PositionQueue {
  #positions = new Set<number>()

  get size(): number {
    return this.#positions.size
  }

  has(position: number): boolean {
    return this.#positions.has(position)
  }

  push(position: number): void {
    this.#positions.add(position)
  }

  /** Takes out the first ones. @param most how many */
  take(most: number): number[] {
    const taken: number[] = []
    for (const position of this.#positions) {
      if (taken.length === most) break
      this.#positions.delete(position)
      taken.push(position)
    }
    return taken
  }

  /** All, in their order. */
  list(): number[] {
    return [...this.#positions]
  }

  /** It does not wait any more. */
  drop(position: number): void {
    this.#positions.delete(position)
  }

  remove(positions: ReadonlySet<number>): void {
    for (const position of positions) this.#positions.delete(position)
  }

  /** Puts back what `take` has taken out. */
  putBack(positions: readonly number[]): void {
    this.#positions = new Set([...positions, ...this.#positions])
  }

  /** Adds positions, and puts all into the order of their numbers. */
  merge(positions: Iterable<number>): void {
    this.#positions = new Set([...this.#positions, ...positions].sort((a, b) => a - b))
  }

  /** Adds positions, each before the first greater one: what stands behind a greater one has waited for its time. @param positions in the order of their numbers */
  insert(positions: readonly number[]): void {
    const all: number[] = []
    let next = 0
    for (const position of this.#positions) {
      while (next < positions.length && positions[next]! < position) all.push(positions[next++]!)
      all.push(position)
    }
    this.#positions = new Set([...all, ...positions.slice(next)])
  }

  /** Puts those first that are named, in the order in which they are. */
  arrange(positions: readonly number[]): void {
    const known = positions.filter((position) => this.#positions.has(position))
    this.#positions = new Set([...known, ...this.#positions])
  }
}
