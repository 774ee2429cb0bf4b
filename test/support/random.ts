/** A small seeded generator (mulberry32), so that a failing run can be repeated: `SEED=<printed number>`. */
export function seededRandom(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** The seed of this run: of the environment, or a new one. */
export const SEED = process.env.SEED === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(process.env.SEED)
