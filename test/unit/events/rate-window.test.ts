/** At most so many of a limit begin in any time of that length, and nearly as many as may. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grantOf } from '../../../src/primary/events/rate-limits.ts'
import { LATE_MAX_MS, type RateLimit, type RateState, takeBack } from '../../../src/primary/events/rate-window.ts'

/** @returns the times at which deliveries begin that are asked for every `stepMs` */
function begunBy(
  limits: readonly RateLimit[],
  stepMs: number,
  untilMs: number,
  wanted: (ms: number) => number,
): number[] {
  const states = new Map<RateLimit, RateState>(limits.map((limit) => [limit, []]))
  const begun: number[] = []
  for (let ms = 0; ms < untilMs; ms += stepMs)
    for (let { granted } = grantOf(states, ms, wanted(ms)); granted > 0; granted--) begun.push(ms)
  return begun
}

const most = (begun: readonly number[], withinMs: number): number =>
  Math.max(...begun.map((from) => begun.filter((ms) => ms >= from && ms < from + withinMs).length))

for (const [stepMs, least] of [
  [1, 55],
  [7, 55],
  [49, 55],
  [250, 48],
] as const)
  test(`five a second are five in any second, and ${least} in twelve if asked every ${stepMs} ms`, () => {
    const begun = begunBy([{ name: 'a', max: 5, perMs: 1000 }], stepMs, 12_000, () => 5)
    // A twentieth longer than it must: between the count and the handler's begin there is a way.
    assert.equal(most(begun, 1050), 5)
    assert.ok(begun.length >= least, `${begun.length}`)
  })

test('after a pause there are not more', () => {
  const begun = begunBy([{ name: 'a', max: 5, perMs: 1000 }], 3, 20_000, (ms) => (ms % 5000 < 2700 ? 3 : 0))
  assert.equal(most(begun, 1000), 5)
})

test('several limits all hold', () => {
  const limits = [
    { name: 'a', max: 5, perMs: 1000 },
    { name: 'b', max: 12, perMs: 10_000 },
  ]
  const begun = begunBy(limits, 10, 30_000, () => 4)
  assert.deepEqual([most(begun, 1000), most(begun, 10_000)], [5, 12])
})

test('a longer limit, or a clock that was ahead, blocks nobody', () => {
  const limit = { name: 'a', max: 5, perMs: 1000 }
  const state: RateState = [[1e15, 5]]
  const { granted, waitMs } = grantOf(new Map([[limit, state]]), 0, 1)
  assert.equal(granted, 0)
  assert.ok(waitMs <= 1000 + LATE_MAX_MS + 50, `${waitMs}`)
  assert.equal(grantOf(new Map([[limit, state]]), waitMs, 5).granted, 5)
})

test('what may begin late counts so much longer, beside what may not', () => {
  const limit = { name: 'a', max: 5, perMs: 1000 }
  const states = new Map<RateLimit, RateState>([[limit, []]])
  assert.equal(grantOf(states, 0, 2, 800).granted, 2)
  assert.equal(grantOf(states, 10, 5).granted, 3)
  assert.equal(grantOf(states, 1099, 5).granted, 0)
  assert.equal(grantOf(states, 1100, 5).granted, 3)
  assert.equal(grantOf(states, 1849, 5).granted, 0)
  assert.equal(grantOf(states, 1850, 5).granted, 2)
})

test('of what is taken back the earliest goes, and what has ended to count is not there any more', () => {
  const state: RateState = [
    [100, 1],
    [200, 2],
    [300, 1],
  ]
  takeBack(state, 150)
  assert.deepEqual(state, [
    [200, 1],
    [300, 1],
  ])
  takeBack(state, 150)
  takeBack(state, 150)
  takeBack(state, 150)
  assert.deepEqual(state, [])
})
