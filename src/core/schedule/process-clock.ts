import type { ClockAnchor } from '../../contracts/tracing.ts'

export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

export function anchorHere(): ClockAnchor {
  return { wallMs: performance.timeOrigin + performance.now(), monotonicMs: monotonicMs() }
}

/**
 * Milliseconds since the epoch, with fractions, the same in all threads that share an anchor. `performance.timeOrigin` is not enough:
 * each thread reads the wall clock for its own, so a span could seem to begin before the one that caused it.
 */
export function clockOf(anchor: ClockAnchor): () => number {
  // The global is looked up anew at each use.
  const clock = performance
  const originMs = anchor.wallMs - anchor.monotonicMs + (monotonicMs() - clock.now())
  return () => originMs + clock.now()
}
