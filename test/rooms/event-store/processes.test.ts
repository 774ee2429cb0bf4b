import assert from 'node:assert/strict'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { EventRecord } from '../../../src/contracts/event-bus.ts'
import type { Heddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { testWith } from '../../support/test-with.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, onPostgres } from './databases.ts'

const testOnPostgres = testWith(onPostgres)
const DATABASE = { EVENT_BUS_DRIVER: 'database' }
const A = { ...DATABASE, REPLICA_ID: 'a' }
const B = { ...DATABASE, REPLICA_ID: 'b' }

testOnPostgres(
  'a process that others have removed ends, and what it had in hand is handled by the next one',
  async (store) => {
    const first = await store.start({ ...A, HOLD: 'wait', SHUTDOWN_TIMEOUT_MS: '1000' })
    const exited = once(first.process, 'exit')
    await post(first, '/orders', { id: 'a' })
    await store.rows('DELETE FROM heddle_member')
    assert.deepEqual(await exited, [75, null])
    assert.ok(first.logs.some(({ msg }) => msg.startsWith('Another process has taken over the events of this one')))
    const second = await store.start(B)
    await until(async () => (await handledBy(second)).length === 2, 'the order handled')
    await isEmpty(store)
  },
)

testOnPostgres('events whose process nobody knows are taken over', async (store) => {
  const first = await store.start({ ...A, HOLD: 'wait' })
  await post(first, '/orders', { id: 'a' })
  await kill(first)
  await store.rows('DELETE FROM heddle_member')
  const second = await store.start(B)
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  await isEmpty(store)
})

testOnPostgres('a lease that nobody renews keeps no process waiting, however far its end is', async (store) => {
  const first = await store.start(A)
  assert.equal(await first.stop(), 0)
  // As it is when the clock of the server was set back, or when somebody else has written it.
  await store.rows(
    `INSERT INTO heddle_member (id, replica, identity, until) OVERRIDING SYSTEM VALUE VALUES (1000000, 'strange', '{}', 'infinity')`,
  )
  await store.rows('UPDATE heddle_slot SET member = 1000000')
  const second = await store.start(B)
  await post(second, '/orders', { id: 'a' })
  await until(async () => (await handledBy(second)).length === 2, 'the order handled', 60_000)
  await isEmpty(store)
})

testOnPostgres('lease: is renewed while all other statements of the process wait', async (store) => {
  // The primary has one connection of the pool.
  const heddle = await store.start({ ...A, RDB_MAX_POOL: '2' })
  const { host, port, user, password, database } = store.server!
  const client = new pg.Client({ host, port, user, password, database })
  client.on('error', () => {})
  await client.connect()
  await client.query('BEGIN; LOCK TABLE heddle_slot IN ACCESS EXCLUSIVE MODE')
  // The primary looks at the slots because there is another member.
  await store.rows(
    `INSERT INTO heddle_member (id, replica, identity, until) OVERRIDING SYSTEM VALUE VALUES (1000000, 'strange', '{}', 'infinity')`,
  )
  const left: number[] = []
  for (let n = 0; n < 24; n++) {
    await sleep(500)
    const [row] = await store.rows<{ ms: number }>(
      "SELECT extract(epoch FROM until - clock_timestamp()) * 1000 AS ms FROM heddle_member WHERE replica = 'a'",
    )
    left.push(Math.floor(Number(row!.ms)))
  }
  await client.end()
  assert.ok(
    left.every((ms) => ms > 6000),
    `the lease had so many milliseconds left: ${left}`,
  )
  await post(heddle, '/orders', { id: 'a' })
  await until(async () => (await handledBy(heddle)).length === 2, 'the order handled')
  assert.equal(await heddle.stop(), 0)
})

testOnPostgres('an event is in the tree of the process that handles it, too, and once', async (store) => {
  const [first, second] = [await store.start(A), await store.start(B)]
  const shippedBy = (heddle: Heddle) => heddle.logs.filter(({ msg }) => msg === 'shipping')
  for (let n = 0; n < 32; n++) await post(first, '/events', { event: 'order.shipped', payload: { id: `order ${n}` } })
  await until(() => shippedBy(first).length + shippedBy(second).length === 32, 'all shipped')
  const treeOf = async (heddle: Heddle) => (await heddle.json('/tree')).body.roots as EventRecord[]
  const [published, received] = [await treeOf(first), await treeOf(second)]
  const there = shippedBy(second).map(({ event_id }) => event_id as string)
  assert.ok(there.length > 0, 'the second process has shipped some')
  for (const id of there) {
    const same = ({ id: other }: EventRecord) => other === id
    assert.deepEqual(received.filter(same), published.filter(same))
  }
})
