import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAcknowledged, Ledger, type Outcome, type Write } from '../../support/ledger.ts'

const writeOf = (outcome: Outcome, id: string | null = 'evt_1'): Write => ({
  subject: 'count',
  requestId: 'r',
  key: '1',
  course: 'straight',
  outcome,
  id,
})

test('a write is acknowledged by a 2xx that names its id, and by nothing else', () => {
  assert.equal(isAcknowledged(writeOf(200)), true)
  assert.equal(isAcknowledged(writeOf(201)), true)
  for (const outcome of [199, 300, 409, 500, 503, 504, 'reset', 'silent'] as const)
    assert.equal(isAcknowledged(writeOf(outcome)), false, String(outcome))
  assert.equal(isAcknowledged(writeOf(200, null)), false)
})

test('outcomes are counted', () => {
  const ledger = new Ledger(0)
  for (const outcome of [200, 500, 200, 'reset'] as const) ledger.record(writeOf(outcome), 0, 1)
  assert.deepEqual(ledger.countByOutcome(), { 200: 2, 500: 1, reset: 1 })
})

test('the longest time without success is between two successes, before the first or after the last', () => {
  const ledger = new Ledger(1000)
  assert.equal(ledger.longestGapMs(1500), 500)
  ledger.record(writeOf(200), 1000, 1100)
  ledger.record(writeOf(503), 1100, 1300)
  ledger.record(writeOf(200), 1300, 1400)
  assert.equal(ledger.longestGapMs(1410), 300)
  assert.equal(ledger.longestGapMs(2400), 1000)
})

test('a percentile is of the successful answers of one subject', () => {
  const ledger = new Ledger(0)
  assert.equal(ledger.percentileMs('count', 0.99), null)
  for (let n = 1; n <= 100; n++) ledger.record(writeOf(200), 0, n)
  ledger.record(writeOf(500), 0, 5000)
  ledger.record({ ...writeOf(201), subject: 'user' }, 0, 7000)
  assert.equal(ledger.percentileMs('count', 0.99), 99)
  assert.equal(ledger.percentileMs('count', 1), 100)
  assert.equal(ledger.percentileMs('user', 0.99), 7000)
})
