/** Counts how often lanes died before, in and after each of their steps. */
export const STEPS = ['boot', 'subscribe', 'unsubscribe', 'read', 'handle', 'publish', 'answer', 'drain'] as const
export const MOMENTS = ['before', 'inside', 'after'] as const
export type Step = (typeof STEPS)[number]
export type Moment = (typeof MOMENTS)[number]

export class CrashCounts {
  readonly #counts = new Map<string, number>()

  add(step: Step, moment: Moment): void {
    const pair = `${step} ${moment}`
    this.#counts.set(pair, (this.#counts.get(pair) ?? 0) + 1)
  }

  addAll(other: CrashCounts): void {
    for (const [pair, count] of other.#counts) this.#counts.set(pair, (this.#counts.get(pair) ?? 0) + count)
  }

  of(step: Step, moment: Moment): number {
    return this.#counts.get(`${step} ${moment}`) ?? 0
  }

  get never(): string[] {
    return STEPS.flatMap((step) => MOMENTS.map((moment) => `${step} ${moment}`)).filter(
      (pair) => !this.#counts.has(pair),
    )
  }

  /** @returns a line for each step */
  get table(): string[] {
    const row = (cells: readonly (string | number)[]): string => cells.map((cell) => String(cell).padStart(12)).join('')
    return [
      row(['dies', ...MOMENTS]),
      ...STEPS.map((step) => row([step, ...MOMENTS.map((moment) => this.of(step, moment))])),
    ]
  }
}
