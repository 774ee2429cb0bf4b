import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter, EventRecord } from '../../../src/contracts/event-bus.ts'
import { post, startWith } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

test('dead letters', async (t) => {
  const heddle = await startWith(t, 'deployed', { env: { EVENT_BUS_DRIVER: 'in_process' } })
  const letters = async (): Promise<DeadLetter[]> => (await heddle.json('/system/dead-letters')).body

  await t.test('an event that ends three lanes is one, and reported like any failure', async () => {
    // Later than the answer to this request, which the lane would take with it.
    const options = { delayMs: 200 }
    const [id] = (await post(heddle, '/publish', { event: 'fleet.deadly', options })).ids
    await until(async () => (await letters()).length > 0, 'the dead letter', 15_000)
    const [letter] = await letters()
    assert.deepEqual([letter!.event_id, letter!.subscriber], [id, 'fleet.Doom'])
    assert.match(letter!.error, /died 3 times/)
    const reports = async (): Promise<EventRecord | undefined> =>
      ((await heddle.json('/system/traces/flat')).body as EventRecord[]).find(
        ({ event }) => event === 'event.delivery.failed',
      )
    assert.equal((await until(reports, 'the report')).parent_id, id)
    await until(async () => (await heddle.json('/dump')).status === 200, 'the next lane')
  })

  await t.test('the last 1000 are kept, oldest first, and the log tells that one was dropped', async () => {
    const { ids } = await post(heddle, '/publish', { event: 'fleet.doomed', count: 1003 })
    await until(async () => (await letters()).at(-1)!.event_id === ids.at(-1), 'the last letter')
    assert.deepEqual(
      (await letters()).map(({ event_id }) => event_id),
      ids.slice(3),
    )
    await until(() => heddle.logs.find(({ msg }) => msg.startsWith('The dead-letter store is full')), 'the warning')
  })
})
