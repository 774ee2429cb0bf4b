import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, onPostgres } from './databases.ts'

const DATABASE = { EVENT_BUS_DRIVER: 'database' }
const A = { ...DATABASE, REPLICA_ID: 'a' }
const B = { ...DATABASE, REPLICA_ID: 'b' }

test('a process that wakes after another one has taken over its events changes nothing, and ends', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
  const first = await store.start({ ...A, HOLD: 'wait', SHUTDOWN_TIMEOUT_MS: '1000' })
  const { id } = await post(first, '/orders', { id: 'a' })
  first.process.kill('SIGSTOP')
  await store.rows("UPDATE heddle_process SET expires_at = now() - interval '1 s' WHERE replica = 'a'")
  const second = await store.start(B)
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  assert.equal((await handledBy(second))[0]!.event_id, id)
  const exited = once(first.process, 'exit')
  first.process.kill('SIGCONT')
  assert.deepEqual(await exited, [78, null])
  assert.ok(first.logs.some(({ msg }) => msg.startsWith('Another process has taken over the events of this one')))
  await isEmpty(store)
})

test('processes publish at the same time, and what an ended one has left is delivered by the next', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
  const processes = await Promise.all([store.start(A), store.start(B)])
  const numbers = Array.from({ length: 40 }, (_, n) => n)
  await Promise.all(
    numbers.map((n) =>
      post(processes[n % 2]!, '/events', { event: 'order.taken', payload: { id: `${n}` }, options: { key: 'k' } }),
    ),
  )
  await until(async () => (await handledBy(processes[0])).length === 80, 'all handled')
  await isEmpty(store)
  const late = { event: 'order.handled', payload: { id: 'late' }, options: { delayMs: 600_000 } }
  await post(processes[0], '/events', late)
  assert.deepEqual(await Promise.all(processes.map((each) => each.stop())), [0, 0])
  const third = await store.start(A)
  await until(async () => (await store.rows('SELECT epoch FROM heddle_process')).length === 1, 'both taken over')
  const [row] = await store.rows<{ owned: boolean; recovered: number }>(
    'SELECT owner = (SELECT epoch FROM heddle_process) AS owned, recovered FROM heddle_event',
  )
  assert.deepEqual(row, { owned: true, recovered: 0 })
  assert.equal(await third.stop(), 0)
})

test('a process that has been taken over stores nothing any more', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
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
  assert.deepEqual(await exited, [78, null])
})

test('everything that a process had accepted when it was killed under load is handled, under its id', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
  const first = await store.start(A)
  const second = await store.start(B)
  const accepted = new Map<string, string>()
  let isOver = false
  const publish = async (client: number): Promise<void> => {
    for (let n = 0; !isOver; n++) {
      const id = `${client}-${n}`
      // Bare events and those of transactions, one after the other.
      const answer = await (n % 2 === 0
        ? post(first, '/orders', { id })
        : post(first, '/events', { event: 'order.taken', payload: { id }, options: { key: `${client}` } })
      ).catch(() => null)
      if (answer === null) return
      accepted.set(id, answer.id)
    }
  }
  const clients = Array.from({ length: 8 }, (_, client) => publish(client))
  await until(() => accepted.size >= 200, 'some load')
  await kill(first)
  isOver = true
  await Promise.all(clients)
  const missing = async (): Promise<string[]> => {
    const handled = new Set((await handledBy(second)).map(({ event_id, order_id }) => `${order_id} ${event_id}`))
    return [...accepted].filter(([id, event]) => !handled.has(`${id} ${event}`)).map(([id]) => id)
  }
  await until(async () => (await missing()).length === 0, 'all that was accepted')
  await isEmpty(store)
  // Each that a transaction has published has its row.
  const [{ ghosts }] = (await store.rows<{ ghosts: string }>(
    `SELECT count(*) AS ghosts FROM handled LEFT JOIN orders ON orders.id = handled.order_id
     WHERE orders.id IS NULL AND order_id NOT LIKE '% after' AND split_part(order_id, '-', 2)::int % 2 = 0`,
  )) as [{ ghosts: string }]
  assert.equal(Number(ghosts), 0)
  const unhandled = await store.rows(
    'SELECT id FROM orders WHERE NOT EXISTS (SELECT 1 FROM handled WHERE order_id = orders.id)',
  )
  assert.deepEqual(unhandled, [], 'each row has its event')
})

test('events whose process nobody knows are taken over', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
  const first = await store.start({ ...A, HOLD: 'wait' })
  await post(first, '/orders', { id: 'a' })
  await kill(first)
  await store.rows('DELETE FROM heddle_process')
  const second = await store.start(B)
  await until(async () => (await handledBy(second)).length === 2, 'the order handled')
  await isEmpty(store)
})

test('a lease that nobody renews keeps no process waiting, however far its end is', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
  const first = await store.start(A)
  assert.equal(await first.stop(), 0)
  // As it is when the clock of the server was set back, or when somebody else has written it.
  await store.change(
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
