import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Reconciler } from '../../../src/primary/event-log/positions.ts'
import type { SqlLog } from '../../../src/primary/event-log/sql-log.ts'

const DIED_MS = 50_000

test('after the death of a lane it looks twice, a second apart, and then as before', async () => {
  const stored: number[] = []
  const log = { memory: { next: 8 }, readPositions: async () => stored } as unknown as SqlLog
  const reconciler = new Reconciler(log, 1)
  const look = (nowMs: number) => reconciler.look(nowMs, 0, () => false)
  await look(DIED_MS)
  stored.push(7)
  reconciler.laneGone(DIED_MS)
  assert.equal(reconciler.isDue(DIED_MS + 50), false)
  assert.equal(reconciler.isDue(DIED_MS + 100), true)
  // The primary stood still: what was to be done meanwhile is done now.
  const firstMs = DIED_MS + 5000
  assert.deepEqual(await look(firstMs), [])
  assert.equal(reconciler.isDue(firstMs + 900), false)
  assert.equal(reconciler.isDue(firstMs + 1000), true)
  assert.deepEqual(await look(firstMs + 1000), [7])
  assert.equal(reconciler.isDue(firstMs + 25_000), false)
  assert.equal(reconciler.isDue(firstMs + 32_000), true)
})
