/** Holds the hub against faults that seeds draw, for six seconds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STEPS } from '../simulation/batch.ts'
import { findingWithin } from '../simulation/story.ts'

test('whatever dies, comes late or fails, the hub loses no event, keeps the order of keys, and has nothing left', async () => {
  const { story, batch } = await findingWithin({ firstSeed: 1, seconds: 6 })
  assert.equal(story, null, story ?? '')
  assert.ok(batch.steps > STEPS)
})
