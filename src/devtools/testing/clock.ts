// The clock of an application under test: what a test calls, and how its time is moved.
import { appMs, nextDueAt, pause, ringDue, SYSTEM_CLOCK } from '../../core/schedule/clock.ts'
import { closeTime, movedMs, moveTime, openTime, showTime, unmovedMs } from '../../core/schedule/moved-time.ts'

/** How long `advance` takes at most, by the system's clock, milliseconds. */
const TIMEOUT_MS = 60_000
/** The last date that JavaScript knows, milliseconds since the epoch. */
const LAST_MS = 8.64e15
/** What is due within this time is waited for instead of moved to: two clocks are read, in whole milliseconds. */
const CLOSE_MS = 2
/** Turns of the loop in which nothing happens before everything that was due has been handed out. */
const CALM_TURNS = 3
/** Turns of the loop after which a pause is made between two. */
const QUICK_TURNS = 100

export interface AdvanceOptions {
  /**
   * `handled` (the default): each step waits until the handlers and jobs that were due have ended, with all that they caused.
   * `begun`: it waits until they have begun, for a test that lets a handler go on later.
   */
  until?: 'handled' | 'begun'
  /** Milliseconds of real time after which `advance` fails. Default 60,000. */
  timeoutMs?: number
}

/** Where the time of the application is to go. */
export type Move = { byMs: number } | { toMs: number }

/** The time of the application under test. It goes on by itself, too. */
export class TestClock {
  readonly #movedMs: () => number
  readonly #move: (move: Move, options: Required<AdvanceOptions>) => Promise<void>

  /** @internal @param movedMs by how much it is moved now */
  constructor(movedMs: () => number, move: (move: Move, options: Required<AdvanceOptions>) => Promise<void>) {
    this.#movedMs = movedMs
    this.#move = move
  }

  /** The time of the application. */
  now(): Date {
    return new Date(unmovedMs() + this.#movedMs())
  }

  /**
   * Moves the time of the application forward, from one due time to the next: delayed events, retries and jobs run in their order, each at its time.
   * Resolves when everything that became due has been handled; see `until`.
   * @param by milliseconds, a text such as `24 h` or `1 h 30 min`, or the time to go to
   * @throws for a time that lies behind, for a state or bus whose times are another server's, and after `timeoutMs`
   */
  async advance(by: number | string | Date, options: AdvanceOptions = {}): Promise<void> {
    const { until = 'handled', timeoutMs = TIMEOUT_MS } = options
    if (until !== 'handled' && until !== 'begun')
      throw new TypeError(`clock.advance: until must be 'handled' or 'begun', not ${JSON.stringify(until)}`)
    if (!(typeof timeoutMs === 'number' && timeoutMs > 0))
      throw new TypeError(`clock.advance: timeoutMs must be a number above 0, not ${JSON.stringify(timeoutMs)}`)
    await this.#move(moveOf(by), { until, timeoutMs })
  }
}

const UNITS: readonly [RegExp, number][] = [
  [/^(?:ms|milliseconds?)$/, 1],
  [/^(?:s|sec|seconds?)$/, 1000],
  [/^(?:m|min|minutes?)$/, 60_000],
  [/^(?:h|hours?)$/, 3_600_000],
  [/^(?:d|days?)$/, 86_400_000],
  [/^(?:w|weeks?)$/, 604_800_000],
]

function moveOf(by: number | string | Date): Move {
  if (by instanceof Date) {
    if (Number.isNaN(by.getTime())) throw new TypeError('clock.advance: the date is invalid')
    return { toMs: by.getTime() }
  }
  const byMs = typeof by === 'string' ? durationOf(by) : by
  if (typeof byMs !== 'number' || !Number.isFinite(byMs))
    throw new TypeError(
      `clock.advance takes milliseconds, a text such as '24 h' or '1 h 30 min', or a Date, not ${JSON.stringify(by)}`,
    )
  if (byMs < 0) throw new TypeError(`clock.advance: ${by} would turn the time back, and it only goes forward`)
  return { byMs: Math.ceil(byMs) }
}

/** @returns NaN for a text that is no time */
function durationOf(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)\s*/gi)]
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text.trimStart()) return Number.NaN
  return parts.reduce((sum, [, number, unit]) => {
    const found = UNITS.find(([name]) => name.test(unit!.toLowerCase()))
    return sum + (found === undefined ? Number.NaN : Number(number) * found[1])
  }, 0)
}

/** @throws TypeError for what is not a time with its zone */
export function startOf(start: Date | string): number {
  const isZoned = typeof start !== 'string' || /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:?\d\d)$/.test(start)
  const ms = new Date(start).getTime()
  if (isZoned && ms >= 0) return ms
  throw new TypeError(
    `start must be a Date, or a time with its zone such as '2026-03-29T00:30:00Z', and not before 1970; it is '${start}'`,
  )
}

/** What has a time that a test moves: the runtime of this process, or one plugin in this thread. */
export interface Timed {
  /** True while something that is due has not been handed out, and with `isWithRunning` while handlers and jobs run. */
  isBusy(isWithRunning: boolean): boolean
  /** The time was moved: what waits for it without a timer is looked at. */
  look(): void
  /** The time has been moved: what is kept for less is forgotten. */
  timeMoved(): Promise<void>
}

const all = new Set<Timed>()

/**
 * Lets the test move the time of this thread.
 * @param start where it begins; undefined: now
 */
export function begin(start: number | undefined): void {
  if (all.size > 0) {
    if (start !== undefined)
      throw new Error(
        '`start` is refused: another plugin of this test file runs, and both have the same clock. Stop it',
      )
    return
  }
  // One that did not start may have left it open.
  closeTime()
  openTime()
  if (start !== undefined) {
    moveTime(start - unmovedMs())
    showTime()
  }
}

export const add = (timed: Timed): void => void all.add(timed)

/** The time is the system's again when nothing is left. */
export function end(timed: Timed): void {
  if (all.delete(timed) && all.size === 0) closeTime()
}

let last: Promise<void> = Promise.resolve()

/** Moves the time of this process, one move after another. */
export function moveAll(move: Move, options: Required<AdvanceOptions>): Promise<void> {
  if (all.size === 0) return Promise.reject(new Error('clock.advance: the application has ended'))
  const moved = last.then(() => new Advance(move, options).run())
  last = moved.catch(() => {})
  return moved
}

class Advance {
  readonly #toMs: number
  readonly #isWithRunning: boolean
  readonly #timeoutMs: number
  readonly #startMs = performance.now()
  #steps = 0

  constructor(move: Move, { until, timeoutMs }: Required<AdvanceOptions>) {
    showTime()
    this.#toMs = 'toMs' in move ? move.toMs : Date.now() + move.byMs
    if (this.#toMs > LAST_MS) throw new Error('clock.advance: that is after the last date that JavaScript knows')
    // For a duration the clock may have gone on since.
    if ('toMs' in move && this.#toMs < Date.now())
      throw new Error(
        `clock.advance: it is ${new Date().toISOString()} already, and the time only goes forward, not to ${new Date(this.#toMs).toISOString()}`,
      )
    this.#isWithRunning = until !== 'begun'
    this.#timeoutMs = timeoutMs
  }

  async run(): Promise<void> {
    for (;;) {
      await this.#calm()
      const nextMs = nextDueAt()
      if (nextMs > appMs() + Math.max(0, this.#toMs - Date.now()) + CLOSE_MS) break
      this.#steps++
      if (nextMs > appMs() + CLOSE_MS) this.#moveBy(nextMs - appMs())
      else await turn()
      this.#ring()
    }
    this.#moveBy(this.#toMs - Date.now())
    this.#ring()
    for (const timed of all) await timed.timeMoved()
    await this.#calm()
  }

  #moveBy(ms: number): void {
    if (ms > 0) moveTime(movedMs() + Math.ceil(ms))
  }

  #ring(): void {
    ringDue()
    for (const timed of all) timed.look()
  }

  /** Waits until everything that is due has been handed out, and has ended. */
  async #calm(): Promise<void> {
    for (let calm = 0, turns = 0; calm < CALM_TURNS; turns++) {
      // Handlers that take longer get the processor.
      await (turns < QUICK_TURNS ? turn() : pause(SYSTEM_CLOCK, 1))
      calm = [...all].some((timed) => timed.isBusy(this.#isWithRunning)) ? 0 : calm + 1
      if (performance.now() - this.#startMs < this.#timeoutMs) continue
      const what = calm === 0 ? 'what is due there has not ended' : 'there is more to come'
      const hint = this.#isWithRunning ? "; { until: 'begun' } does not wait for handlers to end" : ''
      throw new Error(
        `clock.advance took ${this.#timeoutMs} ms (timeoutMs): it has got to ${new Date().toISOString()} in ${this.#steps} steps, and ${what}${hint}`,
      )
    }
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
