import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter, EventRecord } from '../../src/contracts/event-bus.ts'
import { until } from '../support/heddle.ts'
import { post, startWith } from './support.ts'

test('the dead letters are the last 1000, oldest first, and the log tells that one was dropped', async (t) => {
  const heddle = await startWith(t, 'deployed')
  const { ids } = await post(heddle, '/publish', { event: 'fleet.doomed', count: 1003 })
  const letters: DeadLetter[] = await until(async () => {
    const { body } = await heddle.json('/system/dead-letters')
    return body.at(-1)?.event_id === ids.at(-1) && body
  }, 'the last letter')
  assert.deepEqual(
    letters.map(({ event_id }) => event_id),
    ids.slice(3),
  )
  await until(() => heddle.logs.find(({ msg }) => msg.startsWith('The dead-letter store is full')), 'the warning')
})

test('an event that ends three lanes is a dead letter and reported like any failure', async (t) => {
  const heddle = await startWith(t, 'deployed')
  // Later than the answer to this request, which the lane would take with it.
  const options = { delayMs: 200 }
  const [id] = (await post(heddle, '/publish', { event: 'fleet.deadly', options })).ids
  const [letter] = await until(
    async () => {
      const { body } = await heddle.json('/system/dead-letters')
      return body.length > 0 && body
    },
    'the dead letter',
    15_000,
  )
  assert.deepEqual([letter.event_id, letter.subscriber], [id, 'fleet.Doom'])
  assert.match(letter.error, /died 3 times/)
  const { body } = await heddle.json('/system/traces/flat')
  const report = (body as EventRecord[]).find(({ event }) => event === 'event.delivery.failed')
  assert.equal(report?.parent_id, id)
})
