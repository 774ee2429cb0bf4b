// Waiting: until, with a limit, for the end of a turn, for all.
import { type Clock, pause, SYSTEM_CLOCK, steadyMs } from './clock.ts'
import { ownTask, ThreadClock, timesOfThreads, together, waitedHereMs } from './thread-clock.cjs'

/** The promise that `settled` has made last. */
let last: Promise<unknown> | null = null

/**
 * A promise of what is there already. A tool that is done before it returns makes its promises here, so that whoever measures the call
 * need not wait for one: each promise that follows another costs about 0.4 µs.
 */
export function settled<T>(value: T): Promise<T> {
  const promise = Promise.resolve(value)
  last = promise
  return promise
}

/** True for what `settled` has made last: asked right after the call that has made it. */
export function isSettled(promise: Promise<unknown>): boolean {
  const isLast = promise === last
  last = null
  return isLast
}

/** True for a promise, of whatever library. It may throw: a `then` may be a getter. */
export const isThenable = (value: unknown): value is Promise<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'

/** One turn of the thread's loop: what the code before has thrown into it, or rejected with nobody waiting, has come up by then. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const waiting: (() => void)[] = []

/**
 * Runs a function of the runtime once this turn of the loop has read all of its input. One `setImmediate` serves all that wait: it is what
 * costs. The functions run in the causal context of whoever was first, so they must not run code of plugins, and must not throw.
 */
export function atTurnEnd(run: () => void): void {
  if (waiting.push(run) === 1) setImmediate(runAll)
}

/** What ran may have been stopped, and the immediates of that turn with it. */
export function recoverTurnEnd(): void {
  if (waiting.length > 0) setImmediate(runAll)
}

function runAll(): void {
  try {
    // Its length is read each time: what a function adds still runs in this turn.
    for (let n = 0; n < waiting.length; n++) waiting[n]!()
  } finally {
    // Left as it is, the list would never be run again.
    waiting.length = 0
  }
}

/** How often a condition is checked by itself, milliseconds. */
const CHECK_MS = 10

/** Resolves when the condition holds, or the time is over. @param deadlineMs by `steadyMs`; later by as long as this thread waits for a core */
export async function until(
  condition: () => boolean,
  deadlineMs: number,
  { checkMs = CHECK_MS, clock = SYSTEM_CLOCK }: { checkMs?: number; clock?: Clock } = {},
): Promise<void> {
  if (condition()) return
  const waitedMs = waitedHereMs()
  const isOver = (): boolean => {
    const nowMs = clock.steadyMs()
    return nowMs >= deadlineMs && (clock !== SYSTEM_CLOCK || nowMs - (waitedHereMs() - waitedMs) >= deadlineMs)
  }
  while (!isOver()) {
    await pause(clock, checkMs)
    if (condition()) return
  }
}

/** To read what the system says of all threads costs some 0.2 ms. */
const LOOK_MS = 50
/** Threads that wait for a core have so many times as long by the clock, at most. */
export const STARVED_FACTOR = 4

/** A time limit for the other threads of this process: what they compute and block for counts, not the time for which they wait for a core. */
export class ThreadsTime {
  readonly #own = ownTask()
  readonly #clock = new ThreadClock(() => {
    const threads = timesOfThreads()
    threads.delete(this.#own)
    return together(threads.values())
  })
  readonly #ownMs: number
  readonly #endMs: number
  #usedMs = 0
  #lookedMs = steadyMs()

  /**
   * @param ownMs that they have, milliseconds of their own time
   * @param maxMs that they have by the clock, from now on
   */
  constructor(ownMs: number, maxMs = STARVED_FACTOR * ownMs) {
    this.#ownMs = ownMs
    this.#endMs = this.#lookedMs + maxMs
  }

  /** Looks at them. @returns true when their time is over */
  look(): boolean {
    const nowMs = steadyMs()
    const passedMs = nowMs - this.#lookedMs
    if (passedMs >= LOOK_MS) {
      this.#lookedMs = nowMs
      // Several threads may compute at once.
      this.#usedMs += Math.min(passedMs, this.#clock.pass(passedMs))
    }
    return this.#usedMs >= this.#ownMs || nowMs >= this.#endMs
  }

  /** Resolves when the condition holds, or their time is over. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition() && !this.look()) await pause(SYSTEM_CLOCK, CHECK_MS)
  }
}

/**
 * Runs once, when this thread has had so much time of its own: time for which it waited for a core does not count. What has arrived by then is read first.
 * @returns cancels it
 */
export function ownLimit(ms: number, run: () => void): () => void {
  const startedMs = steadyMs()
  const waitedMs = waitedHereMs()
  let timer: NodeJS.Timeout
  let last: NodeJS.Immediate | undefined
  const wait = (leftMs: number): void => {
    timer = setTimeout(() => {
      const ownMs = steadyMs() - startedMs - (waitedHereMs() - waitedMs)
      if (ownMs < ms) wait(Math.max(1, ms - ownMs))
      else last = setImmediate(run)
    }, leftMs)
  }
  wait(ms)
  return () => {
    clearTimeout(timer)
    if (last !== undefined) clearImmediate(last)
  }
}

/**
 * What a promise gives in time, else `late`. The promise goes on after that, and nobody hears of it any more.
 * @param timeoutMs of this thread's own time
 * @throws what the promise rejects with in time
 */
export async function withTimeout<T, L>(
  promise: Promise<T>,
  timeoutMs: number,
  late: L,
  clock: Clock = SYSTEM_CLOCK,
): Promise<T | L> {
  let cancel = (): void => {}
  const timeout = new Promise<L>((resolve) => {
    const over = (): void => resolve(late)
    if (clock === SYSTEM_CLOCK) cancel = ownLimit(timeoutMs, over)
    else {
      const timer = clock.after(timeoutMs, over)
      cancel = () => clock.cancel(timer)
    }
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    cancel()
  }
}
