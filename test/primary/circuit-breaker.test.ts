import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  type Aside,
  CircuitBreaker,
  SET_ASIDE_DEATHS,
  SET_ASIDE_MAX_PAUSE_MS,
  SET_ASIDE_PAUSE_MS,
  SET_ASIDE_WINDOW_MS,
} from '../../src/primary/supervision/circuit-breaker.ts'

/** A clock that the test moves, and what is told of plugins. */
function clocked(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 })
  const told: [plugin: string, pauseMs: number | null][] = []
  const reasons: string[] = []
  const setAside = new CircuitBreaker((plugin: string, aside: Aside | null) => {
    told.push([plugin, aside === null ? null : aside.untilMs - Date.now()])
    if (aside !== null) reasons.push(aside.reason)
  })
  const blame = (times: number, plugin = 'shop.Sell'): void => {
    for (let n = 0; n < times; n++) setAside.blame(plugin, 'it threw (sell.ts:1:1)')
  }
  return { setAside, told, reasons, blame, pass: (ms: number) => t.mock.timers.tick(ms) }
}

test('a plugin that brings down fewer lanes than the window allows is left alone', (t) => {
  const { setAside, told, blame, pass } = clocked(t)
  for (let n = 0; n < 3 * SET_ASIDE_DEATHS; n++) {
    blame(1)
    pass(SET_ASIDE_WINDOW_MS / (SET_ASIDE_DEATHS - 1))
  }
  assert.deepEqual(told, [])
  assert.equal(setAside.isOpen('shop.Sell'), false)
})

test('one that brings down five within a minute is set aside, with the reason, and the others are not', (t) => {
  const { setAside, told, reasons, blame } = clocked(t)
  blame(SET_ASIDE_DEATHS - 1)
  blame(SET_ASIDE_DEATHS - 1, 'shop.Buy')
  assert.deepEqual(told, [])
  blame(1)
  assert.deepEqual(told, [['shop.Sell', SET_ASIDE_PAUSE_MS]])
  assert.equal(
    reasons[0],
    `Set aside until ${new Date(1_000_000 + SET_ASIDE_PAUSE_MS).toISOString()}: its handlers brought down 5 lanes in 60 s; last: it threw (sell.ts:1:1)`,
  )
  assert.deepEqual([setAside.isOpen('shop.Sell'), setAside.isOpen('shop.Buy')], [true, false])
  blame(3)
  assert.equal(told.length, 1, 'what was begun before ends without a second pause')
})

test('on trial one death more sets it aside again, each time for twice as long, up to the longest pause', (t) => {
  const { setAside, told, reasons, blame, pass } = clocked(t)
  blame(SET_ASIDE_DEATHS)
  for (let pauseMs = SET_ASIDE_PAUSE_MS, n = 0; n < 10; n++) {
    assert.deepEqual(told.at(-1), ['shop.Sell', pauseMs])
    pass(pauseMs - 1)
    assert.equal(setAside.isOpen('shop.Sell'), true)
    pass(1)
    assert.deepEqual(told.at(-1), ['shop.Sell', null])
    assert.equal(setAside.isOpen('shop.Sell'), false)
    pass(SET_ASIDE_WINDOW_MS - 1)
    blame(1)
    assert.match(reasons.at(-1)!, /brought down another lane; last/)
    pauseMs = Math.min(2 * pauseMs, SET_ASIDE_MAX_PAUSE_MS)
  }
  assert.deepEqual(told.at(-1), ['shop.Sell', SET_ASIDE_MAX_PAUSE_MS])
})

test('one that stands its trial begins anew', (t) => {
  const { told, blame, pass } = clocked(t)
  blame(SET_ASIDE_DEATHS)
  pass(SET_ASIDE_PAUSE_MS)
  blame(1)
  pass(2 * SET_ASIDE_PAUSE_MS)
  pass(SET_ASIDE_WINDOW_MS)
  told.length = 0
  blame(SET_ASIDE_DEATHS - 1)
  assert.deepEqual(told, [])
  blame(1)
  assert.deepEqual(told, [['shop.Sell', SET_ASIDE_PAUSE_MS]])
})

test('new code is forgiven all: who is aside goes on, nothing is counted, no timer is left', (t) => {
  const { setAside, told, blame, pass } = clocked(t)
  blame(SET_ASIDE_DEATHS)
  blame(SET_ASIDE_DEATHS - 1, 'shop.Buy')
  setAside.forgive()
  assert.deepEqual(told, [
    ['shop.Sell', SET_ASIDE_PAUSE_MS],
    ['shop.Sell', null],
  ])
  assert.equal(setAside.isOpen('shop.Sell'), false)
  blame(1)
  blame(1, 'shop.Buy')
  pass(SET_ASIDE_MAX_PAUSE_MS)
  assert.equal(told.length, 2)
})
