import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextCronRun } from '../../../src/core/schedule/cron.ts'

/** The runs from a time on, as UTC without the zeros of the end. */
function runs(expression: string, timeZone: string | undefined, from: string, count: number): string[] {
  const found: string[] = []
  let at = Date.parse(from)
  while (found.length < count) {
    at = nextCronRun(expression, at, timeZone)!
    found.push(new Date(at).toISOString().replace(/:00\.000Z$/, 'Z'))
  }
  return found
}

test('nextCronRun(): follows the clocks of its zone, and UTC without one', () => {
  assert.deepEqual(runs('0 3 * * *', undefined, '2026-07-01T12:00Z', 1), ['2026-07-02T03:00Z'])
  assert.deepEqual(runs('0 3 * * *', 'Europe/Vienna', '2026-07-01T12:00Z', 1), ['2026-07-02T01:00Z'])
  assert.deepEqual(runs('0 3 * * *', 'Europe/Vienna', '2026-01-01T12:00Z', 1), ['2026-01-02T02:00Z'])
  assert.deepEqual(runs('0 0 1 * *', 'America/New_York', '2026-10-15T00:00Z', 2), [
    '2026-11-01T04:00Z',
    '2026-12-01T05:00Z',
  ])
})

test('nextCronRun(): a time that clocks leave out is due at the end of the gap, once', () => {
  for (const expression of ['30 2 * * *', '0 2 * * *', '15,45 2 * * *'])
    assert.deepEqual(
      runs(expression, 'Europe/Vienna', '2026-03-28T23:00Z', 2).map((at) => at.slice(0, 13)),
      ['2026-03-29T01', '2026-03-30T00'],
      expression,
    )
  assert.deepEqual(runs('30 2 * * *', 'Europe/Vienna', '2026-03-28T23:00Z', 1), ['2026-03-29T01:00Z'])
  assert.deepEqual(runs('0 3 * * *', 'Europe/Vienna', '2026-03-28T23:00Z', 1), ['2026-03-29T01:00Z'])
  assert.deepEqual(runs('0 0 * * *', 'Africa/Cairo', '2026-04-23T12:00Z', 2), [
    '2026-04-23T22:00Z',
    '2026-04-24T21:00Z',
  ])
})

test('nextCronRun(): a time that comes twice is due at the first, whenever it is asked for', () => {
  for (const from of ['2026-10-25T00:30Z', '2026-10-25T00:45Z', '2026-10-25T01:10Z', '2026-10-25T01:30Z'])
    assert.deepEqual(runs('30 2 * * *', 'Europe/Vienna', from, 1), ['2026-10-26T01:30Z'], from)
  assert.deepEqual(runs('30 2 * * *', 'Europe/Vienna', '2026-10-24T12:00Z', 2), [
    '2026-10-25T00:30Z',
    '2026-10-26T01:30Z',
  ])
  assert.deepEqual(runs('30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', 2), [
    '2026-11-01T05:30Z',
    '2026-11-02T06:30Z',
  ])
  assert.deepEqual(runs('45 1 * * *', 'Australia/Lord_Howe', '2026-04-04T00:00Z', 2), [
    '2026-04-04T14:45Z',
    '2026-04-05T15:15Z',
  ])
  assert.deepEqual(runs('30 2,14 * * *', 'Europe/Vienna', '2026-10-24T22:00Z', 2), [
    '2026-10-25T00:30Z',
    '2026-10-25T13:30Z',
  ])
})

test('nextCronRun(): what runs all day long leaves out no hour that is there, and repeats the one that is', () => {
  const autumn = ['2026-10-25T00:30Z', '2026-10-25T01:00Z', '2026-10-25T01:30Z', '2026-10-25T02:00Z']
  assert.deepEqual(runs('*/30 * * * *', 'Europe/Vienna', '2026-10-25T00:00Z', 4), autumn)
  const spring = ['2026-03-29T00:30Z', '2026-03-29T01:00Z', '2026-03-29T01:30Z']
  assert.deepEqual(runs('*/30 * * * *', 'Europe/Vienna', '2026-03-29T00:00Z', 3), spring)
})

test('nextCronRun(): gives what a walk over all moments gives, around each change of clocks', () => {
  const expressions = ['15,45 * * * *', '*/20 */2 * * *', '0,30 1-3 * * *', '10 0,1,2,3 * * *', '5 23 * * *']
  for (const [timeZone, change] of [
    ['Europe/Vienna', '2026-03-29T01:00Z'],
    ['Europe/Vienna', '2026-10-25T01:00Z'],
    ['America/New_York', '2026-11-01T06:00Z'],
    ['Australia/Lord_Howe', '2026-04-04T15:00Z'],
    ['Africa/Cairo', '2026-04-23T22:00Z'],
  ] as const) {
    const fromMs = Date.parse(change) - 3 * 3_600_000
    const untilMs = Date.parse(change) + 3 * 3_600_000
    for (const expression of expressions) {
      const found: number[] = []
      for (
        let at = nextCronRun(expression, fromMs, timeZone)!;
        at <= untilMs;
        at = nextCronRun(expression, at, timeZone)!
      )
        found.push(at)
      assert.deepEqual(found, walked(expression, timeZone, fromMs, untilMs), `${expression} in ${timeZone}`)
      // From any moment on the same times come.
      for (let at = fromMs; at < untilMs; at += 13 * 60_000 + 500) {
        const next = nextCronRun(expression, at, timeZone)!
        const expected = found.find((each) => each > at)
        if (expected !== undefined)
          assert.equal(next, expected, `${expression} in ${timeZone} from ${new Date(at).toISOString()}`)
      }
    }
  }
})

/** Minute by minute, by what the clocks show. */
function walked(expression: string, timeZone: string, fromMs: number, untilMs: number): number[] {
  const isShown = expression.split(' ')[1]!.startsWith('*')
  const format = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'short' })
  const wallOf = (ms: number): number => Date.parse(`${format.format(ms).replace(' ', 'T')}Z`)
  const isNamed = (wall: number): boolean => nextCronRun(expression, wall - 1) === wall
  const found: number[] = []
  const done = new Set<number>()
  let before = wallOf(fromMs)
  for (let at = fromMs + 60_000; at <= untilMs; at += 60_000) {
    const wall = wallOf(at)
    let isDue = false
    // What the clocks have left out is due where they go on.
    for (let minute = Math.min(before + 60_000, wall); minute <= wall; minute += 60_000) {
      if (!isNamed(minute) || (isShown ? minute !== wall : done.has(minute))) continue
      done.add(minute)
      isDue = true
    }
    if (isDue) found.push(at)
    before = isShown ? wall : Math.max(before, wall)
  }
  return found
}
