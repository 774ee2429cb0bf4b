import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, onSqlite } from './databases.ts'

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
  // As a lane leaves it that dies between the commit and the hub: a row at a position that was taken.
  const database = new Database(store.path!, { timeout: 5000 })
  database.exec(
    `INSERT INTO heddle_event (seq, id, event, envelope, payload, key, due_ms, expires_ms)
     VALUES (1, '${id}', 'order.handled', '[null,null,"","shop.TakeOrders",1700000000000,"id"]', '{"id":"found"}', NULL, 0, 0)`,
  )
  database.close()
  assert.equal((await post(heddle, '/orders/exit', { id: 'b' })).success, false)
  const isFound = async () => (await handledBy(heddle)).some(({ order_id }) => order_id === 'found after')
  await until(isFound, 'the lost event')
  const told = () => heddle.logs.some(({ msg }) => /^\d stored events? had not been handed on/.test(msg))
  await until(told, 'the log')
  await isEmpty(store)
})

test('an event that processes die of is tried alone, and is a dead letter in the end', async (t) => {
  const store = (await onSqlite(t))!
  const first = await store.start({ HOLD: 'wait' })
  await post(first, '/orders', { id: 'good' })
  await post(first, '/orders', { id: 'bad' })
  await kill(first)
  let deaths = 0
  for (; deaths < 10; deaths++) {
    const heddle = await store.start({ HOLD: 'kill' }).catch(() => null)
    if (heddle === null) continue
    const died = once(heddle.process, 'exit').then(() => true)
    const letters = (): Promise<{ error: string }[]> =>
      heddle.json('/dead-letters').then(
        ({ body }) => body.letters,
        () => [],
      )
    const lives = until(async () => (await letters()).length === 1, 'a letter').then(() => false)
    if (heddle.process.signalCode !== null || (await Promise.race([died, lives.catch(() => true)]))) continue
    assert.match((await letters())[0]!.error, /died 3 times/)
    await until(async () => (await handledBy(heddle)).some(({ order_id }) => order_id === 'good'), 'the other event')
    break
  }
  assert.ok(deaths >= 3 && deaths <= 7, `${deaths} deaths`)
  await isEmpty(store)
})
