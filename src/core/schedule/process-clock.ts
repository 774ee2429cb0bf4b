import type { ClockAnchor } from '../../contracts/tracing.ts'
import { clock } from './steady-time.ts'

export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6

export function anchorHere(): ClockAnchor {
  return { wallMs: clock.timeOrigin + clock.now(), monotonicMs: monotonicMs() }
}

/**
 * Milliseconds since the epoch, with fractions, the same in all threads that share an anchor. `performance.timeOrigin` is not enough:
 * each thread reads the wall clock for its own, so a span could seem to begin before the one that caused it.
 */
export function clockOf(anchor: ClockAnchor): () => number {
  const originMs = anchor.wallMs - anchor.monotonicMs + (monotonicMs() - clock.now())
  return () => originMs + clock.now()
}
