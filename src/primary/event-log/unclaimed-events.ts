/** Stored events that nobody here subscribes to, by name: they stay in the log. Perhaps their plugin did not boot. */
export class UnclaimedEvents {
  readonly #positions = new Map<string, number[]>()
  readonly #report: (message: string) => void
  #hasNew = false

  constructor(report: (message: string) => void) {
    this.#report = report
  }

  get count(): number {
    let count = 0
    for (const { length } of this.#positions.values()) count += length
    return count
  }

  has(seq: number): boolean {
    return [...this.#positions.values()].some((positions) => positions.includes(seq))
  }

  add(event: string, seq: number): void {
    const positions = this.#positions.get(event) ?? []
    if (positions.push(seq) === 1) this.#positions.set(event, positions)
    this.#hasNew = true
  }

  /** Tells of them when there are more than the last time. */
  report(): void {
    if (!this.#hasNew) return
    this.#hasNew = false
    for (const [event, { length }] of this.#positions)
      this.#report(`Nobody subscribes to ${event}: ${length} stored events wait until somebody does`)
  }

  /** Removes them all. @returns their positions */
  takeAll(): number[] {
    const all = [...this.#positions.values()].flat()
    this.#positions.clear()
    return all
  }
}
