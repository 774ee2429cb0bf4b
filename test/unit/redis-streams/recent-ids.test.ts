import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeEventId } from '../../../src/core/causality/ids.ts'
import { RecentIds } from '../../../src/core/collections/recent-ids.ts'

test('an id is new once, whatever came in between', () => {
  const ids = new RecentIds()
  for (let n = 0; n < 20_000; n++) {
    const [first, second] = [makeEventId(), makeEventId()]
    assert.ok(ids.add(first))
    assert.ok(ids.add(second))
    assert.ok(!ids.add(first))
    assert.ok(!ids.add(second))
  }
})

test('the last thousand ids are known, and none of a hundred thousand is taken for another', () => {
  const ids = new RecentIds()
  const all = Array.from({ length: 100_000 }, makeEventId)
  assert.equal(all.filter((id) => ids.add(id)).length, all.length)
  const known = all.slice(-1000).filter((id) => !ids.add(id)).length
  assert.equal(known, 1000)
})
