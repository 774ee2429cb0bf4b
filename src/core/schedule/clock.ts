/** Time and chance as arguments: what is given them can be run under a time and a chance that a test makes. */
import { timeOrderedId } from '../causality/ids.ts'
import { steadyMs } from './steady-time.ts'

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

/** The globals are looked up at each call: a test may have replaced them. */
export const SYSTEM_CLOCK: Clock = {
  nowMs: () => Date.now(),
  steadyMs,
  after: (ms, run) => setTimeout(run, ms),
  every: (ms, run) => setInterval(run, ms),
  cancel: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  turn: (run) => void setImmediate(run),
}

export const SYSTEM_CHANCE: Chance = { fraction: () => Math.random(), id: timeOrderedId }

/** Resolves when so many milliseconds are over. */
export const pause = (clock: Clock, ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve))

/** Resolves in the next turn of the loop. */
export const nextTurn = (clock: Clock): Promise<void> => new Promise((resolve) => clock.turn(resolve))
