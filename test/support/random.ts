/** A source of random numbers that says the same for the same seed, so that a failing run can be repeated: `SEED=<printed number>`. Source: mulberry32. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A whole number from 0 to 2^32 - 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor((this.next() / 2 ** 32) * limit)
  }

  chance(probability: number): boolean {
    return this.next() / 2 ** 32 < probability
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }

  /** Small letters and digits. */
  text(length: number): string {
    let text = ''
    while (text.length < length) text += this.below(36).toString(36)
    return text
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }
}

/** A small generator alone. @returns a whole number from 0 to `below` - 1 */
export function seededRandom(seed: number): (below: number) => number {
  const random = new Random(seed)
  return (below) => random.below(below)
}

/** The seed of this run: of the environment, or a new one. */
export const SEED = process.env.SEED === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(process.env.SEED)
