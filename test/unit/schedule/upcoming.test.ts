import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Schedule } from '../../../src/contracts/scheduler.ts'
import { firstDueMs, nextCronRun } from '../../../src/core/schedule/cron.ts'
import { UPCOMING_MS, UPCOMING_SHOWN, upcomingRuns } from '../../../src/core/schedule/upcoming.ts'

const FROM = Date.parse('2026-07-01T12:00:30Z')
const cron = (expression: string, timeZone?: string): Schedule => ({
  kind: 'cron',
  expression,
  ...(timeZone !== undefined && { timeZone }),
})

/** The runs of the hour after a time. */
function upcoming(schedule: Schedule, fromMs = FROM) {
  const found = upcomingRuns(schedule, firstDueMs(schedule, fromMs), fromMs + UPCOMING_MS)
  return { ...found, runs: found.runs.map((ms) => new Date(ms).toISOString().slice(11, 19)) }
}

test('upcomingRuns(): lists the runs of the next hour', () => {
  assert.deepEqual(upcoming(cron('*/15 * * * *')), {
    runs: ['12:15:00', '12:30:00', '12:45:00', '13:00:00'],
    count: 4,
    isMore: false,
  })
  assert.deepEqual(upcoming(cron('0 3 * * *')), { runs: [], count: 0, isMore: false })
  assert.deepEqual(upcoming(cron('15 30 12 * * *')).runs, ['12:30:15'])
  assert.deepEqual(upcoming({ kind: 'every', everyMs: 1_200_000 }).runs, ['12:20:30', '12:40:30'])
  assert.deepEqual(upcoming({ kind: 'at', atMs: FROM + 5000 }).runs, ['12:00:35'])
  assert.deepEqual(upcoming({ kind: 'at', atMs: FROM + UPCOMING_MS }).runs, [])
})

test('upcomingRuns(): lists the first 20 of a job that runs every second, and counts all', () => {
  const { runs, count, isMore } = upcoming(cron('* * * * * *'))
  assert.equal(runs.length, UPCOMING_SHOWN)
  assert.deepEqual([runs[0], runs.at(-1)], ['12:00:31', '12:00:50'])
  assert.deepEqual([count, isMore], [3599, false])
  const everyTen = upcoming({ kind: 'every', everyMs: 10 })
  assert.deepEqual([everyTen.runs.length, everyTen.count], [20, 359_999])
})

test('upcomingRuns(): names the times at which the runs really come, also in the nights in which clocks are set', () => {
  const expressions = ['30 2 * * *', '*/20 * * * *', '10,50 1-3 * * *', '*/10 30 2 * * *', '0 0 2 * * *']
  for (const night of ['2026-03-28T23:30:00Z', '2026-10-24T22:30:00Z']) {
    for (const expression of expressions) {
      for (let hour = 0; hour < 5; hour++) {
        const fromMs = Date.parse(night) + hour * UPCOMING_MS
        const expected: number[] = []
        let ms = nextCronRun(expression, fromMs, 'Europe/Vienna')!
        for (; ms < fromMs + UPCOMING_MS; ms = nextCronRun(expression, ms, 'Europe/Vienna')!) expected.push(ms)
        const { runs, count } = upcomingRuns(
          cron(expression, 'Europe/Vienna'),
          firstDueMs(cron(expression, 'Europe/Vienna'), fromMs),
          fromMs + UPCOMING_MS,
        )
        assert.deepEqual(runs, expected, `${expression} from ${new Date(fromMs).toISOString()}`)
        assert.equal(count, expected.length)
      }
    }
  }
})
