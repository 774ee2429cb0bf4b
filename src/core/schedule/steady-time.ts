// Time that nobody sets: of one thread, and one clock for all threads of a process.
import type { ClockAnchor } from '../../contracts/tracing.ts'

/** The clock of this thread, for what runs with each request: V8 looks the global up anew at each use. */
export const clock = performance
const ORIGIN_MS = clock.timeOrigin

/**
 * Milliseconds since the epoch, by a clock that nobody sets: what is measured or limited with it does not notice when the system's clock
 * is moved. The two then differ, and so do two threads, so it is for durations and limits within one thread; what is stored, sent or
 * shown as a date has `Date.now()`.
 */
export function steadyMs(): number {
  return Math.trunc(ORIGIN_MS + clock.now())
}

/** The same with fractions. */
export function exactMs(): number {
  return ORIGIN_MS + clock.now()
}

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
