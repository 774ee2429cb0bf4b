// The runs of a schedule within the next hour.
import type { Schedule } from '../../contracts/scheduler.ts'
import { nextCronRun } from './cron.ts'
import { WallClock } from './wall-clock.ts'

/** How far ahead it looks, milliseconds. */
export const UPCOMING_MS = 3_600_000
/** Maximum runs that are listed; all are counted. */
export const UPCOMING_SHOWN = 20
/** Maximum expressions whose minutes are kept. */
const KEPT_MAX = 500

const MINUTE_MS = 60_000

export interface Upcoming {
  /** The first ones, milliseconds since the epoch. */
  runs: number[]
  count: number
  /** There may be more than `count`. */
  isMore: boolean
}

/** @param firstMs the next run; null: none @param untilMs the first moment that does not count, at most an hour later */
export function upcomingRuns(schedule: Schedule, firstMs: number | null, untilMs: number): Upcoming {
  if (firstMs === null || firstMs >= untilMs) return { runs: [], count: 0, isMore: false }
  switch (schedule.kind) {
    case 'at':
      return { runs: [firstMs], count: 1, isMore: false }
    case 'every': {
      const count = Math.ceil((untilMs - firstMs) / schedule.everyMs)
      const length = Math.min(count, UPCOMING_SHOWN)
      return { runs: Array.from({ length }, (_, n) => firstMs + n * schedule.everyMs), count, isMore: false }
    }
    case 'cron':
      return cronRuns(schedule, firstMs, untilMs)
  }
}

type Cron = Extract<Schedule, { kind: 'cron' }>

function cronRuns({ expression, timeZone }: Cron, firstMs: number, untilMs: number): Upcoming {
  const fields = expression.trim().split(/\s+/)
  const seconds = fields.length === 6 ? secondsOf(fields[0]!) : [0]
  // All seconds of a minute that the clocks leave out are one run.
  if (fields.length === 6 && timeZone !== undefined && isChanged(timeZone, firstMs - 1, untilMs)) {
    return stepped(expression, timeZone, firstMs, untilMs)
  }
  const upcoming: Upcoming = { runs: [], count: 0, isMore: false }
  for (const minuteMs of minutesOf(fields.slice(-5).join(' '), timeZone, firstMs, untilMs)) {
    for (const secondMs of seconds) {
      const ms = minuteMs + secondMs
      if (ms < firstMs || ms >= untilMs) continue
      if (upcoming.count++ < UPCOMING_SHOWN) upcoming.runs.push(ms)
    }
  }
  return upcoming
}

const isChanged = (timeZone: string, fromMs: number, untilMs: number): boolean =>
  new WallClock(timeZone).changeAfter(fromMs, untilMs) !== null

function stepped(expression: string, timeZone: string, firstMs: number, untilMs: number): Upcoming {
  const runs: number[] = []
  let ms: number | null = firstMs
  for (; ms !== null && ms < untilMs && runs.length < UPCOMING_SHOWN; ms = nextCronRun(expression, ms, timeZone)) {
    runs.push(ms)
  }
  return { runs, count: runs.length, isMore: ms !== null && ms < untilMs }
}

// Asking for the next run of an expression costs 0.1 ms, and a page asks for all of them every few seconds.
const minutes = new Map<string, number[]>()
const seconds = new Map<string, number[]>()

/** The minutes from that of the first run on in which there are runs. */
function minutesOf(expression: string, timeZone: string | undefined, firstMs: number, untilMs: number): number[] {
  const fromMs = Math.floor(firstMs / MINUTE_MS) * MINUTE_MS
  const toMs = Math.ceil(untilMs / MINUTE_MS) * MINUTE_MS
  return kept(minutes, `${expression} ${timeZone} ${fromMs} ${toMs}`, () => timesOf(expression, timeZone, fromMs, toMs))
}

/** The seconds of a minute at which a field holds, in milliseconds. */
const secondsOf = (field: string): number[] =>
  kept(seconds, field, () => timesOf(`${field} * * * * *`, undefined, 0, MINUTE_MS))

function timesOf(expression: string, timeZone: string | undefined, fromMs: number, untilMs: number): number[] {
  const times: number[] = []
  let ms = nextCronRun(expression, fromMs - 1, timeZone)
  for (; ms !== null && ms < untilMs; ms = nextCronRun(expression, ms, timeZone)) times.push(ms)
  return times
}

function kept(times: Map<string, number[]>, key: string, make: () => number[]): number[] {
  let found = times.get(key)
  if (found === undefined) {
    if (times.size >= KEPT_MAX) times.clear()
    found = make()
    times.set(key, found)
  }
  return found
}
