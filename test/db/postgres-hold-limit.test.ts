import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HoldLimit } from '../../src/extras/postgres/hold-limit.ts'

test('fewer transactions run at a time after a collision, and more again as they come through', () => {
  const limit = new HoldLimit(8)
  limit.take()
  assert.equal(limit.room, 7)
  limit.collided()
  assert.equal(limit.room, 3)
  for (let n = 0; n < 5; n++) limit.collided()
  assert.equal(limit.room, 1)
  limit.give()
  for (let n = 0; n < 3; n++) limit.cameThrough()
  assert.equal(limit.room, 3)
  for (let n = 0; n < 100; n++) limit.cameThrough()
  assert.equal(limit.room, 8)
})

test('with one connection there is always room for one', () => {
  const limit = new HoldLimit(1)
  limit.collided()
  assert.equal(limit.room, 1)
  limit.take()
  assert.equal(limit.room, 0)
})
