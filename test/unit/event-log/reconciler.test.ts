import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Reconciler } from '../../../src/primary/event-log/reconciler.ts'
import type { LogDatabase } from '../../../src/runtime/event-log/log-database.ts'

const DIED_MS = 50_000

/** A log with one event, at position 7. */
const DATABASE = { query: async () => [{ seq: 7 }] } as unknown as LogDatabase
const look = (reconciler: Reconciler, nowMs: number) =>
  reconciler.look(DATABASE, nowMs, { next: 8, dueMs: 0 }, () => false)

test('after the death of a lane it looks twice, a second apart, and then as before', async () => {
  const reconciler = new Reconciler(1)
  await reconciler.look(
    { ...DATABASE, query: async () => [] } as unknown as LogDatabase,
    DIED_MS,
    { next: 7, dueMs: 0 },
    () => false,
  )
  reconciler.laneGone(DIED_MS)
  assert.equal(reconciler.isDue(DIED_MS + 50), false)
  assert.equal(reconciler.isDue(DIED_MS + 100), true)
  // The primary stood still: what was to be done meanwhile is done now.
  const firstMs = DIED_MS + 5000
  assert.deepEqual(await look(reconciler, firstMs), [])
  assert.equal(reconciler.isDue(firstMs + 900), false)
  assert.equal(reconciler.isDue(firstMs + 1000), true)
  assert.deepEqual(await look(reconciler, firstMs + 1000), [7])
  assert.equal(reconciler.isDue(firstMs + 25_000), false)
  assert.equal(reconciler.isDue(firstMs + 32_000), true)
})
