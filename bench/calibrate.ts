import { spin } from './domains/bench/spin.ts'

const PROBE_ITERATIONS = 200_000
const ATTEMPTS = 50

/** How many iterations of `spin` take so long on this machine, by the fastest of several runs: a busy moment must not shorten the work. */
export function iterationsFor(milliseconds: number): number {
  let fastestMs = Number.POSITIVE_INFINITY
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const startMs = performance.now()
    spin(PROBE_ITERATIONS)
    fastestMs = Math.min(fastestMs, performance.now() - startMs)
  }
  return Math.round((PROBE_ITERATIONS / fastestMs) * milliseconds)
}
