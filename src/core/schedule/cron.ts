// When a schedule is due.
import { createRequire } from 'node:module'
import type { Schedule } from '../../contracts/scheduler.ts'

type Croner = typeof import('croner')

const require = createRequire(import.meta.url)
let croner: Croner | undefined

/**
 * The next time after `afterMs` at which a cron expression of five or six fields holds, in UTC.
 * @returns milliseconds since the epoch, or null when that never comes
 * @throws a TypeError that says what is wrong with the expression
 */
export function nextCronRun(expression: string, afterMs: number): number | null {
  if (typeof expression !== 'string') throw new TypeError('the expression must be a string')
  const fields = expression.trim().split(/\s+/)
  // Counted here because croner also takes dates and nicknames where an expression is wanted.
  if (fields.length < 5 || fields.length > 6) {
    throw new TypeError(`expected five or six fields, got ${fields[0] === '' ? 0 : fields.length}`)
  }
  // On the first use: a thread without cron jobs does not load it.
  croner ??= require('croner') as Croner
  const cron = new croner.Cron(fields.join(' '), { mode: '5-or-6-parts', timezone: 'UTC', paused: true })
  return cron.nextRun(new Date(afterMs))?.getTime() ?? null
}

/** The next time of a schedule after one of its times that lies in the future: nothing drifts, and missed runs do not pile up. Null: none. */
export function nextDueMs(schedule: Schedule, dueMs: number, nowMs: number): number | null {
  switch (schedule.kind) {
    case 'at':
      return null
    case 'cron':
      return nextCronRun(schedule.expression, Math.max(nowMs, dueMs))
    case 'every':
      return dueMs + schedule.everyMs * Math.max(1, Math.ceil((nowMs - dueMs) / schedule.everyMs))
  }
}

/** The first time of a schedule that begins now. */
export function firstDueMs(schedule: Schedule, nowMs: number): number | null {
  return schedule.kind === 'at' ? schedule.atMs : nextDueMs(schedule, nowMs, nowMs)
}
