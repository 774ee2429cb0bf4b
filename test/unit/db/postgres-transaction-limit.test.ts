import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TransactionLimit } from '../../../src/extras/postgres/pool.ts'

test('fewer transactions run at a time after a collision, and more again as they come through', () => {
  const limit = new TransactionLimit(8)
  limit.take()
  assert.equal(limit.room, 7)
  limit.conflicted()
  assert.equal(limit.room, 3)
  for (let n = 0; n < 5; n++) limit.conflicted()
  assert.equal(limit.room, 1)
  limit.give()
  for (let n = 0; n < 3; n++) limit.succeeded()
  assert.equal(limit.room, 3)
  for (let n = 0; n < 100; n++) limit.succeeded()
  assert.equal(limit.room, 8)
})

test('with one connection there is always room for one', () => {
  const limit = new TransactionLimit(1)
  limit.conflicted()
  assert.equal(limit.room, 1)
  limit.take()
  assert.equal(limit.room, 0)
})
