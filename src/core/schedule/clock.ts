/** Time that nobody sets, and time and chance as arguments: what is given them can be run under a time and a chance that a test makes. */

import type { ClockAnchor } from '../../contracts/tracing.ts'
import { timeOrderedId } from '../causality/ids.ts'
import { movedMemory, movedMs } from './moved-time.ts'

/** What `after` and `every` return, for `cancel`. */
export interface Timer {
  /** It does not keep the process from ending. */
  unref(): this
}

/** What a thread knows of time, and how it waits. */
export interface Clock {
  /** Milliseconds since the epoch, as a date: whoever sets the system's clock moves it. */
  nowMs(): number
  /** Milliseconds by a clock that nobody sets, for durations and limits within this thread. */
  steadyMs(): number
  /** Runs once, when so many milliseconds are over. */
  after(ms: number, run: () => void): Timer
  /** As `steadyMs`, for what an application waits for (delays, limits): it goes on when a test moves the time. */
  appMs(): number
  /**
   * As `after`, for what an application waits for: it also runs when a test moves the time that far.
   * @param mostMs it runs after so many milliseconds already, and whoever set it looks again
   */
  due(ms: number, run: () => void, mostMs?: number): Timer
  /** Runs again and again, with so many milliseconds between. */
  every(ms: number, run: () => void): Timer
  /** A timer that is over, or that was never set, is no fault. */
  cancel(timer: Timer | undefined): void
  /** Runs in the next turn of the loop. */
  turn(run: () => void): void
}

/** What a thread leaves to chance. */
export interface Chance {
  /** From 0 to below 1. */
  fraction(): number
  /** An id that nobody else gets, ordered by time: 32 hexadecimal digits. */
  id(): string
}

/** Node runs a timer of more at once. */
export const TIMER_MAX_MS = 2 ** 31 - 1

/** A timer for longer than Node's. */
class LongTimer implements Timer {
  #timer: NodeJS.Timeout
  #isHolding = true

  constructor(ms: number, run: () => void) {
    const dueMs = steadyMs() + ms
    const wait = (): NodeJS.Timeout => {
      const leftMs = dueMs - steadyMs()
      return setTimeout(leftMs > TIMER_MAX_MS ? again : run, Math.min(leftMs, TIMER_MAX_MS))
    }
    const again = (): void => {
      this.#timer = wait()
      if (!this.#isHolding) this.#timer.unref()
    }
    this.#timer = wait()
  }

  unref(): this {
    this.#isHolding = false
    this.#timer.unref()
    return this
  }

  cancel(): void {
    clearTimeout(this.#timer)
  }
}

/** What waits for a time that a test may move. Empty outside of a test. */
const dues = new Set<DueTimer>()

/** A timer that also runs when a test moves the time that far. */
class DueTimer implements Timer {
  readonly dueMs: number
  readonly #run: () => void
  readonly #timer: Timer | undefined

  /** @param mostMs infinite: it runs by a moved time alone */
  constructor(ms: number, run: () => void, mostMs: number) {
    this.dueMs = appMs() + ms
    this.#run = run
    if (mostMs !== Number.POSITIVE_INFINITY) this.#timer = SYSTEM_CLOCK.after(Math.min(ms, mostMs), () => this.ring())
    dues.add(this)
  }

  unref(): this {
    this.#timer?.unref()
    return this
  }

  cancel(): void {
    dues.delete(this)
    SYSTEM_CLOCK.cancel(this.#timer)
  }

  ring(): void {
    this.cancel()
    this.#run()
  }
}

/** When the next of what waits for a time that a test may move is due, by `appMs`; infinite: never. */
export function nextDueAt(): number {
  let firstMs = Number.POSITIVE_INFINITY
  for (const { dueMs } of dues) firstMs = Math.min(firstMs, dueMs)
  return firstMs
}

/** A test has moved the time: runs what is due, in its order. */
export function ringDue(): void {
  const nowMs = appMs()
  const due = [...dues].filter(({ dueMs }) => dueMs <= nowMs).sort((a, b) => a.dueMs - b.dueMs)
  // One may cancel another.
  for (const timer of due) if (dues.has(timer)) timer.ring()
}

/** The globals are looked up at each call: a test may have replaced them. */
export const SYSTEM_CLOCK: Clock = {
  nowMs: () => Date.now(),
  steadyMs,
  after: (ms, run) => (ms <= TIMER_MAX_MS ? setTimeout(run, ms) : new LongTimer(ms, run)),
  appMs,
  due: (ms, run, mostMs = ms) =>
    movedMemory() === null ? SYSTEM_CLOCK.after(Math.min(ms, mostMs), run) : new DueTimer(ms, run, mostMs),
  every: (ms, run) => setInterval(run, ms),
  cancel: (timer) => {
    if (timer instanceof LongTimer || timer instanceof DueTimer) timer.cancel()
    else clearTimeout(timer as NodeJS.Timeout | undefined)
  },
  turn: (run) => void setImmediate(run),
}

export const SYSTEM_CHANCE: Chance = { fraction: () => Math.random(), id: timeOrderedId }

/** Resolves when so many milliseconds are over. */
export const pause = (clock: Clock, ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve))

/** Resolves in the next turn of the loop. */
export const nextTurn = (clock: Clock): Promise<void> => new Promise((resolve) => clock.turn(resolve))

/** The clock of this thread, for what runs with each request: V8 looks the global up anew at each use. */
export const clock = performance
const ORIGIN_MS = clock.timeOrigin
const { hrtime } = process

/**
 * Milliseconds since the epoch, by a clock that nobody sets: what is measured or limited with it does not notice when the system's clock
 * is moved. The two then differ, and so do two threads, so it is for durations and limits within one thread; what is stored, sent or
 * shown as a date has `Date.now()`.
 */
export function steadyMs(): number {
  return Math.trunc(ORIGIN_MS + clock.now())
}

/** Milliseconds by `steadyMs`, and by how much a test has moved the time. */
export function appMs(): number {
  return steadyMs() + movedMs()
}

/** Milliseconds since any time, by one clock of all threads of a machine, which nobody sets. */
export function machineMs(): number {
  const [seconds, nanoseconds] = hrtime()
  return seconds * 1000 + nanoseconds / 1_000_000
}

/** The same as `steadyMs` with fractions. */
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
