import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RowAges } from '../../../src/primary/event-store/queue-figures.ts'

test('a row is due since the first look that could see its number, and never before its event was published', () => {
  const ages = new RowAges()
  ages.mark(100, 10_000)
  ages.mark(200, 20_000)
  assert.equal(ages.since(150, 0, 30_000), 20_000, 'a delayed event, published long ago')
  assert.equal(ages.since(150, 15_000, 30_000), 20_000)
  assert.equal(ages.since(200, 25_000, 30_000), 25_000)
  assert.equal(ages.since(201, 0, 30_000), 30_000, 'no look has seen it')
})

test('the event tells of rows that were there before the first look', () => {
  const ages = new RowAges()
  ages.mark(100, 10_000)
  assert.equal(ages.since(100, 4_000, 30_000), 4_000)
  assert.equal(ages.since(100, 12_000, 30_000), 10_000, 'a clock that was set')
})

test('a look at which no number was drawn keeps the earlier time, and many looks stay few marks', () => {
  const ages = new RowAges()
  ages.mark(100, 10_000)
  ages.mark(200, 20_000)
  ages.mark(200, 99_000)
  assert.equal(ages.since(150, 0, 100_000), 20_000)
  for (let n = 0; n < 10_000; n++) ages.mark(300 + n, 100_000 + n)
  const since = ages.since(5000, 0, 200_000)
  assert.ok(since >= 104_700 && since <= 110_000, String(since))
})
