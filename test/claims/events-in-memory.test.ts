import assert from 'node:assert/strict'
import { test } from 'node:test'
import { logContract } from '../contracts/log.ts'
import { MEMORY } from '../contracts/log-kinds.ts'
import { runBusContract } from '../rooms/events/bus-contract.ts'
import { DOMAINS, post, seen } from '../rooms/events/contract/driving.ts'
import { startHeddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'

logContract(MEMORY, 'shared')

runBusContract('in process', async () => ({ EVENT_BUS_DRIVER: 'in_process' }))

test('a slow subscriber fills its share of the queue, others go on, and what it has taken is all delivered', async (t) => {
  // The database would keep what the queue has no room for.
  const env = { EVENT_BUS_DRIVER: 'in_process', EVENT_BUS_MAX_QUEUE: '100' }
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 2, env })
  const { taken, refused } = await post(heddle, '/publish-many', {
    event: 'counted',
    count: 1000,
    payload: { ms: 200 },
  })
  // Half of the queue, and in each lane what it has begun to handle.
  assert.ok(taken.length >= 50 && refused.length > 0, `${taken.length} taken`)
  assert.deepEqual(new Set(refused), new Set(['EVENT_BUS_FULL']))
  const other = await post(heddle, '/publish-many', { event: 'plain', count: 10, payload: { tag: 'other' } })
  assert.equal(other.taken.length, 10, 'an event of another subscriber is accepted')
  await until(() => seen(heddle, 'counted').length >= taken.length, 'all that were taken')
  assert.deepEqual(
    seen(heddle, 'counted')
      .map(({ n }) => n)
      .sort((a, b) => a - b),
    taken.sort((a: number, b: number) => a - b),
  )
  const again = await post(heddle, '/publish-many', { event: 'counted', count: 50 })
  assert.equal(again.taken.length, 50, 'there is room again')
})
