import assert from 'node:assert/strict'
import { once } from 'node:events'
import { post } from '../../support/started-service.ts'
import { testWith } from '../../support/test-with.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, onPostgres } from './databases.ts'

const testOnPostgres = testWith(onPostgres)
const DATABASE = { EVENT_BUS_DRIVER: 'database' }
const A = { ...DATABASE, REPLICA_ID: 'a' }
const B = { ...DATABASE, REPLICA_ID: 'b' }

testOnPostgres('a process that has been taken over stores nothing any more', async (store) => {
  const heddle = await store.start({ ...A, SHUTDOWN_TIMEOUT_MS: '1000' })
  const exited = once(heddle.process, 'exit')
  await store.rows('UPDATE heddle_process SET adopter = 0')
  const answers = await Promise.all([
    post(heddle, '/events', { event: 'order.taken', payload: { id: 'a' } }),
    post(heddle, '/orders', { id: 'b' }),
  ])
  assert.deepEqual(
    answers.map(({ success }) => success),
    [false, false],
  )
  assert.deepEqual(await store.rows('SELECT id FROM orders UNION ALL SELECT id FROM heddle_event'), [])
  assert.deepEqual(await exited, [75, null])
  assert.ok(heddle.logs.some(({ msg }) => msg.startsWith('Another process has taken over the events of this one')))
})

testOnPostgres('events whose process nobody knows are taken over', async (store) => {
  const first = await store.start({ ...A, HOLD: 'wait' })
  await post(first, '/orders', { id: 'a' })
  await kill(first)
  await store.rows('DELETE FROM heddle_process')
  const second = await store.start(B)
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  await isEmpty(store)
})

testOnPostgres('a lease that nobody renews keeps no process waiting, however far its end is', async (store) => {
  const first = await store.start(A)
  assert.equal(await first.stop(), 0)
  // As it is when the clock of the server was set back, or when somebody else has written it.
  await store.rows(
    `INSERT INTO heddle_process (epoch, replica, identity, expires_at) VALUES (1000000, 'strange', '{}', 'infinity')`,
  )
  const second = await store.start(B)
  const readiness = async () => (await second.json('/readiness')).body
  assert.match((await readiness()).reasons.join(), /The process strange, which shares the event log, does not answer/)
  await until(async () => (await readiness()).ready, 'the log', 60_000)
  await post(second, '/orders', { id: 'a' })
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  await isEmpty(store)
})
