/** Holds the hub and the event store against faults that seeds draw, for some seconds. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STEPS } from '../simulation/batch.ts'
import { storedFindingWithin } from '../simulation/stored/batch.ts'
import { findingWithin } from '../simulation/story.ts'

test('whatever dies, comes late or fails, the hub loses no event, keeps the order of keys, and has nothing left', async () => {
  const { story, batch } = await findingWithin({ firstSeed: 1, seconds: 6 })
  assert.equal(story, null, story ?? '')
  assert.ok(batch.steps > STEPS)
})

test('whatever several processes and their server do, none of them loses an event, passes another of its key, or repeats one', async () => {
  const { story, batch } = await storedFindingWithin('postgres', 1, 6)
  assert.equal(story, null, story ?? '')
  assert.ok(batch.steps > STEPS && batch.processes > batch.runs)
})

test('whatever lanes, the process and the database do, the event store loses no event and keeps the order of keys', async () => {
  const { story, batch } = await storedFindingWithin('sqlite', 1, 6)
  assert.equal(story, null, story ?? '')
  assert.ok(batch.steps > STEPS && batch.processes > batch.runs)
})
