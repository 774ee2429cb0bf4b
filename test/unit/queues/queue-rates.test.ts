import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InsertTimes } from '../../../src/primary/queues/insert-times.ts'
import { QueueRates } from '../../../src/primary/queues/queue-rates.ts'

const counted = (published: number, ended: number) => new Map([['q', { published, ended }]])

test('rates are those of the last minute, and of a younger process those since its start', () => {
  const rates = new QueueRates()
  rates.add(0, new Map())
  rates.add(5000, counted(30, 10))
  assert.deepEqual(rates.of('q', { published: 40, ended: 12 }), { in: 40, out: 12 })
  // After a minute the first sample is the one of 5 s.
  for (let n = 2; n <= 13; n++) rates.add(n * 5000, counted(30 + n, 10 + n))
  assert.deepEqual(rates.of('q', { published: 50, ended: 30 }), { in: 20, out: 20 })
  assert.deepEqual(rates.of('another', { published: 3, ended: 1 }), { in: 3, out: 1 })
})

test('a subscriber that comes anew counts from zero', () => {
  const rates = new QueueRates()
  rates.add(0, counted(100, 100))
  assert.deepEqual(rates.of('q', { published: 2, ended: 1 }), { in: 2, out: 1 })
})

test('a row is younger than each time at which all numbers were lower, however many times are known', () => {
  const inserts = new InsertTimes()
  assert.equal(inserts.notBefore(5), 0)
  for (let n = 1; n <= 5000; n++) inserts.add(n * 10, n * 1000)
  assert.equal(inserts.notBefore(50_001), 5_000_000)
  assert.equal(inserts.notBefore(49_995), 4_999_000)
  assert.equal(inserts.notBefore(5), 0)
  // Older times are known less exactly, and never too late.
  for (let n = 100; n < 5000; n += 7) {
    const atMs = inserts.notBefore(n * 10 + 1)
    assert.ok(atMs > 0 && atMs <= n * 1000, `${n}: ${atMs}`)
  }
})
