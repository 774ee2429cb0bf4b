// When a schedule is due.
import { createRequire } from 'node:module'
import type { Schedule } from '../../contracts/scheduler.ts'
import { WallClock } from './wall-clock.ts'

type Croner = typeof import('croner')

const require = createRequire(import.meta.url)
let croner: Croner | undefined

/** By time zone: there are few. */
const clocks = new Map<string, WallClock>()

/**
 * The next time after `afterMs` at which a cron expression of five or six fields holds, by the clocks of a time zone. Where they are set forward,
 * a time that they leave out is due at the end of the gap; where they are set back, a time that comes twice is due at the first. If the hours begin
 * with `*`, whatever the clocks show is due: nothing in a gap, and twice what comes twice. Source: cron(8) of Vixie cron.
 * @returns milliseconds since the epoch, or null when that never comes
 * @throws a TypeError that says what is wrong with the expression
 */
export function nextCronRun(expression: string, afterMs: number, timeZone?: string): number | null {
  if (typeof expression !== 'string') throw new TypeError('the expression must be a string')
  const fields = expression.trim().split(/\s+/)
  // Counted here because croner also takes dates and nicknames where an expression is wanted.
  if (fields.length < 5 || fields.length > 6) {
    throw new TypeError(`expected five or six fields, got ${fields[0] === '' ? 0 : fields.length}`)
  }
  // On the first use: a thread without cron jobs does not load it.
  croner ??= require('croner') as Croner
  const cron = new croner.Cron(fields.join(' '), { mode: '5-or-6-parts', timezone: 'UTC', paused: true })
  const next = (ms: number): number | null => cron.nextRun(new Date(ms))?.getTime() ?? null
  if (timeZone === undefined) return next(afterMs)
  const clock = clocks.get(timeZone) ?? new WallClock(timeZone)
  clocks.set(timeZone, clock)
  // croner's own zones run a list of hours or minutes twice, or not at all, in the nights in which clocks are set.
  return (fields.at(-4)!.startsWith('*') ? nextShown : nextOnce)(clock, next, afterMs)
}

/** A step from one time on a clock to the next that the expression names. */
type Next = (ms: number) => number | null

/** Each time of the expression is due once. */
function nextOnce(clock: WallClock, next: Next, afterMs: number): number | null {
  for (let shown = next(clock.at(afterMs)); shown !== null; shown = next(shown)) {
    const ms = clock.firstOf(shown)
    if (ms > afterMs) return ms
  }
  return null
}

/** Each moment is due at which the clocks show a time of the expression. */
function nextShown(clock: WallClock, next: Next, afterMs: number): number | null {
  let fromMs = afterMs
  let from = clock.at(afterMs)
  for (let shown = next(from); shown !== null; shown = next(from - 1)) {
    const ms = fromMs + shown - from
    const change = clock.changeAfter(fromMs, ms)
    if (change === null) return ms
    fromMs = change
    from = clock.at(change)
  }
  return null
}

/** The next time of a schedule after one of its times that lies in the future: nothing drifts, and missed runs do not pile up. Null: none. */
export function nextDueMs(schedule: Schedule, dueMs: number, nowMs: number): number | null {
  switch (schedule.kind) {
    case 'at':
      return null
    case 'cron':
      return nextCronRun(schedule.expression, Math.max(nowMs, dueMs), schedule.timeZone)
    case 'every':
      return dueMs + schedule.everyMs * Math.max(1, Math.ceil((nowMs - dueMs) / schedule.everyMs))
  }
}

/** The first time of a schedule that begins now. */
export function firstDueMs(schedule: Schedule, nowMs: number): number | null {
  return schedule.kind === 'at' ? schedule.atMs : nextDueMs(schedule, nowMs, nowMs)
}
