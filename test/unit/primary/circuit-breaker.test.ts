import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  CIRCUIT_CRASHES,
  CIRCUIT_MAX_OPEN_MS,
  CIRCUIT_OPEN_MS,
  CIRCUIT_WINDOW_MS,
  CircuitBreaker,
  type OpenCircuit,
} from '../../../src/primary/supervision/circuit-breaker.ts'

/** A clock that the test moves, and what is told of plugins. */
function clocked(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 })
  const told: [plugin: string, pauseMs: number | null][] = []
  const reasons: string[] = []
  const circuitBreaker = new CircuitBreaker((plugin: string, open: OpenCircuit | null) => {
    told.push([plugin, open === null ? null : open.untilMs - Date.now()])
    if (open !== null) reasons.push(open.reason)
  })
  const blame = (times: number, plugin = 'shop.Sell'): void => {
    for (let n = 0; n < times; n++) circuitBreaker.recordCrash(plugin, 'it threw (sell.ts:1:1)')
  }
  return { circuitBreaker, told, reasons, blame, pass: (ms: number) => t.mock.timers.tick(ms) }
}

test('a plugin that brings down fewer lanes than the window allows is left alone', (t) => {
  const { circuitBreaker, told, blame, pass } = clocked(t)
  for (let n = 0; n < 3 * CIRCUIT_CRASHES; n++) {
    blame(1)
    pass(CIRCUIT_WINDOW_MS / (CIRCUIT_CRASHES - 1))
  }
  assert.deepEqual(told, [])
  assert.equal(circuitBreaker.isOpen('shop.Sell'), false)
})

test('one that brings down five within a minute is disabled, with the reason, and the others are not', (t) => {
  const { circuitBreaker, told, reasons, blame } = clocked(t)
  blame(CIRCUIT_CRASHES - 1)
  blame(CIRCUIT_CRASHES - 1, 'shop.Buy')
  assert.deepEqual(told, [])
  blame(1)
  assert.deepEqual(told, [['shop.Sell', CIRCUIT_OPEN_MS]])
  assert.equal(
    reasons[0],
    `Disabled until ${new Date(1_000_000 + CIRCUIT_OPEN_MS).toISOString()}: its handlers crashed 5 lanes in 60 s; last: it threw (sell.ts:1:1)`,
  )
  assert.deepEqual([circuitBreaker.isOpen('shop.Sell'), circuitBreaker.isOpen('shop.Buy')], [true, false])
  blame(3)
  assert.equal(told.length, 1, 'what was begun before ends without a second pause')
})

test('on trial one death more disables it again, each time for twice as long, up to the longest pause', (t) => {
  const { circuitBreaker, told, reasons, blame, pass } = clocked(t)
  blame(CIRCUIT_CRASHES)
  for (let pauseMs = CIRCUIT_OPEN_MS, n = 0; n < 10; n++) {
    assert.deepEqual(told.at(-1), ['shop.Sell', pauseMs])
    pass(pauseMs - 1)
    assert.equal(circuitBreaker.isOpen('shop.Sell'), true)
    pass(1)
    assert.deepEqual(told.at(-1), ['shop.Sell', null])
    assert.equal(circuitBreaker.isOpen('shop.Sell'), false)
    pass(CIRCUIT_WINDOW_MS - 1)
    blame(1)
    assert.match(reasons.at(-1)!, /crashed another lane; last/)
    pauseMs = Math.min(2 * pauseMs, CIRCUIT_MAX_OPEN_MS)
  }
  assert.deepEqual(told.at(-1), ['shop.Sell', CIRCUIT_MAX_OPEN_MS])
})

test('one that stands its trial begins anew', (t) => {
  const { told, blame, pass } = clocked(t)
  blame(CIRCUIT_CRASHES)
  pass(CIRCUIT_OPEN_MS)
  blame(1)
  pass(2 * CIRCUIT_OPEN_MS)
  pass(CIRCUIT_WINDOW_MS)
  told.length = 0
  blame(CIRCUIT_CRASHES - 1)
  assert.deepEqual(told, [])
  blame(1)
  assert.deepEqual(told, [['shop.Sell', CIRCUIT_OPEN_MS]])
})

test('new code is forgiven all: who is aside goes on, nothing is counted, no timer is left', (t) => {
  const { circuitBreaker, told, blame, pass } = clocked(t)
  blame(CIRCUIT_CRASHES)
  blame(CIRCUIT_CRASHES - 1, 'shop.Buy')
  circuitBreaker.reset()
  assert.deepEqual(told, [
    ['shop.Sell', CIRCUIT_OPEN_MS],
    ['shop.Sell', null],
  ])
  assert.equal(circuitBreaker.isOpen('shop.Sell'), false)
  blame(1)
  blame(1, 'shop.Buy')
  pass(CIRCUIT_MAX_OPEN_MS)
  assert.equal(told.length, 2)
})
