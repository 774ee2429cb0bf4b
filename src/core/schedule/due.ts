import type { Schedule } from '../../contracts/scheduler.ts'
import { nextCronRun } from './cron.ts'

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
