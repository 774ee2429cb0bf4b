import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { types } from 'node:util'
import { appMs, nextDueAt, ringDue, SYSTEM_CLOCK, steadyMs } from '../../../src/core/schedule/clock.ts'
import {
  closeTime,
  movedMemory,
  movedMs,
  moveTime,
  openTime,
  showTime,
  unmovedMs,
} from '../../../src/core/schedule/moved-time.ts'
import { SqliteConnection } from '../../../src/tools/sqlite/connection.ts'
import { temporaryFolder } from '../../support/folder.ts'

const HOUR_MS = 3_600_000
/** Between two readings of a clock, on a busy machine. */
const SLACK_MS = 60_000

const isAbout = (ms: number, wantedMs: number): void =>
  assert.ok(Math.abs(ms - wantedMs) < SLACK_MS, `${ms} is not ${wantedMs}`)

afterEach(closeTime)

test('outside of a test the time is the system’s, and what is due is a timer of Node', () => {
  const timer = SYSTEM_CLOCK.due(HOUR_MS, () => {}).unref()
  assert.equal(timer.constructor.name, 'Timeout')
  assert.equal(nextDueAt(), Number.POSITIVE_INFINITY)
  assert.deepEqual([movedMs(), movedMemory()], [0, null])
  SYSTEM_CLOCK.cancel(timer)
})

test('a moved time is that of all threads with the same memory, and durations stay', () => {
  openTime()
  const memory = movedMemory()!
  moveTime(HOUR_MS)
  openTime(memory)
  assert.equal(movedMs(), HOUR_MS)
  isAbout(appMs(), steadyMs() + HOUR_MS)
  isAbout(steadyMs(), Date.now())
})

test('Date tells the moved time, is what it was otherwise, and is the old one in the end', () => {
  const Before = Date
  const { now } = Date
  const old = new Date(5)
  openTime()
  showTime()
  moveTime(HOUR_MS)
  const realMs = unmovedMs()
  isAbout(realMs, now.call(Date))
  for (const ms of [Date.now(), Before.now(), Date.parse(new Date().toISOString()), Date.parse(Date())])
    isAbout(ms, realMs + HOUR_MS)
  assert.ok(old instanceof Date && new Date() instanceof Before && structuredClone(old) instanceof Date)
  assert.ok(types.isDate(new Date()))
  assert.equal(new Date().constructor, Date)
  assert.deepEqual(new Date(5), old)
  assert.equal(new Date(2020, 0, 2).getDate(), 2)
  assert.equal(Date.UTC(2020, 0), Before.UTC(2020, 0))
  class Day extends Date {}
  assert.ok(new Day() instanceof Day)
  isAbout(new Day().getTime(), realMs + HOUR_MS)
  closeTime()
  assert.equal(Date, Before)
  assert.equal(Date.now, now)
  assert.equal(new Date().constructor, Date)
})

test('what is due runs when the time is moved that far, in its order, unless it is cancelled', () => {
  openTime()
  const ran: string[] = []
  const due = (name: string, ms: number, mostMs = Number.POSITIVE_INFINITY) =>
    SYSTEM_CLOCK.due(ms, () => ran.push(name), mostMs).unref()
  due('third', 3 * HOUR_MS, HOUR_MS)
  due('first', HOUR_MS)
  const cancelled = due('second', 2 * HOUR_MS)
  due('later', 4 * HOUR_MS)
  isAbout(nextDueAt(), appMs() + HOUR_MS)
  SYSTEM_CLOCK.cancel(cancelled)
  ringDue()
  assert.deepEqual(ran, [])
  moveTime(3 * HOUR_MS)
  ringDue()
  assert.deepEqual(ran, ['first', 'third'])
  isAbout(nextDueAt(), appMs() + HOUR_MS)
  moveTime(4 * HOUR_MS)
  ringDue()
  assert.deepEqual(ran, ['first', 'third', 'later'])
  assert.equal(nextDueAt(), Number.POSITIVE_INFINITY)
})

test('what is due also runs by itself, and looks again after its longest wait', async () => {
  openTime()
  await new Promise<void>((resolve) => SYSTEM_CLOCK.due(1, resolve))
  await new Promise<void>((resolve) => SYSTEM_CLOCK.due(HOUR_MS, resolve, 1))
})

test('SQLite tells the moved time in all of its functions, defaults included', (t) => {
  openTime()
  showTime()
  moveTime(Date.UTC(2030, 0, 2, 3, 4, 5, 678) - unmovedMs())
  const connection = new SqliteConnection(`${temporaryFolder(t)}/moved.db`)
  connection.run(
    'CREATE TABLE at (n INTEGER, made TEXT DEFAULT CURRENT_TIMESTAMP, sec INTEGER DEFAULT (unixepoch()))',
    [],
  )
  connection.run('CREATE INDEX by_day ON at (date(made))', [])
  connection.run('INSERT INTO at (n) VALUES (1)', [])
  const one = (sql: string) => Object.values(connection.run(sql, []).rows[0]!)
  const wanted = '2030-01-02 03:'
  for (const sql of [
    "datetime('now')",
    'datetime()',
    'CURRENT_TIMESTAMP',
    "strftime('%Y-%m-%d %H:%M:%S')",
    "datetime('NOW', '+0 days')",
  ])
    assert.ok(String(one(`SELECT ${sql}`)[0]).startsWith(wanted), `${sql}: ${one(`SELECT ${sql}`)[0]}`)
  assert.deepEqual(one("SELECT date('now'), CURRENT_DATE, date('now', '+1 day')"), [
    '2030-01-02',
    '2030-01-02',
    '2030-01-03',
  ])
  assert.deepEqual(one('SELECT typeof(unixepoch()), typeof(sec), substr(made, 1, 14) FROM at'), [
    'integer',
    'integer',
    wanted,
  ])
  isAbout(Number(one("SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)")[0]), Date.now())
  isAbout((Number(one('SELECT julianday()')[0]) - 2440587.5) * 86_400_000, Date.now())
  assert.deepEqual(one("SELECT timediff('now', '2030-01-01 00:00') > '+0000-00-01 03:04'"), [1])
  // A time that is given stays as it is.
  assert.deepEqual(one("SELECT datetime(0, 'unixepoch'), strftime('%s', '2020-01-01'), date(NULL)"), [
    '1970-01-01 00:00:00',
    '1577836800',
    null,
  ])
})
