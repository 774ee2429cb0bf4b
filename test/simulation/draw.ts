/** What a run of the simulation draws: all its chance comes from one seed. */
import type { Chance } from '../../src/core/schedule/clock.ts'
import { seededRandom } from '../support/random.ts'

export class Draw implements Chance {
  readonly below: (below: number) => number
  #ids = 0

  constructor(seed: number) {
    this.below = seededRandom(seed)
  }

  readonly fraction = (): number => this.below(2 ** 30) / 2 ** 30

  readonly id = (): string => (++this.#ids).toString(16).padStart(32, '0')

  /** True so often, of 1. A rate of 0 draws nothing. */
  is(rate: number): boolean {
    return rate > 0 && this.fraction() < rate
  }

  of<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }
}
