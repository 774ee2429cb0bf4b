import assert from 'node:assert/strict'
import { test } from 'node:test'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, onSqlite } from './databases.ts'

test('what a lane has stored and not handed on before it died is found', async (t) => {
  const store = (await onSqlite(t))!
  const heddle = await store.start()
  const { id } = await post(heddle, '/orders', { id: 'a' })
  await until(async () => (await handledBy(heddle)).length === 2, 'the order handled')
  await isEmpty(store)
  // When the deletes of these are done, the process knows that those before are: it repeats none of them.
  await post(heddle, '/orders', { id: 'next' })
  await until(async () => (await handledBy(heddle)).length === 4, 'the next order handled')
  await isEmpty(store)
  // As a lane leaves it that dies between the commit and the hub.
  await store.rows(
    `INSERT INTO heddle_delivery (grp, thread, event_id, event, envelope, payload)
     SELECT id, 99, '${id}', event, '[null,null,"","shop.TakeOrders",1700000000000,"id"]', '{"id":"found"}' FROM heddle_group WHERE event = 'order.handled'`,
  )
  assert.equal((await post(heddle, '/orders/exit', { id: 'b' })).success, false)
  const isFound = async () => (await handledBy(heddle)).some(({ order_id }) => order_id === 'found after')
  await until(isFound, 'the lost event')
  await isEmpty(store)
})
