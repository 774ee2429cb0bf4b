import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { onPostgres } from './databases.ts'

const MOST = 60

test('events that no process has yet count against EVENT_BUS_MAX_STORED, and what is stored is handled all the same', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
  const env = { EVENT_BUS_DRIVER: 'database', EVENT_BUS_MAX_STORED: String(MOST), EVENT_BUS_MAX_QUEUE: '20' }
  const processes = await Promise.all(
    ['a', 'b'].map((REPLICA_ID) => store.start({ ...env, REPLICA_ID, HOLD: 'wait', SHUTDOWN_TIMEOUT_MS: '500' })),
  )
  const isShared = 'SELECT 1 AS is WHERE (SELECT count(DISTINCT member) FROM heddle_slot) = 2'
  await until(async () => (await store.rows(isShared)).length > 0, 'keys that both have')
  let refusal = ''
  for (let n = 0; refusal === '' && n < 10 * MOST; n++) {
    const event = { event: 'order.taken', payload: { id: `${n}` }, options: { key: `van ${n % 40}` } }
    refusal = (await post(processes[n % 2]!, '/events', event)).error ?? ''
  }
  // New requests are refused from three quarters on.
  assert.match(refusal, /^The (event store is full|service is overloaded)/)
  const [{ stored }] = (await store.rows<{ stored: string }>('SELECT count(*) AS stored FROM heddle_delivery')) as [
    { stored: string },
  ]
  // What one of them has taken counts for that one alone.
  assert.ok(Number(stored) <= 2 * MOST, `${stored} are stored`)
  // Whoever has room takes the others' keys, too.
  for (const heddle of processes) assert.equal(await heddle.stop(), 0)
  const third = await store.start({ ...env, REPLICA_ID: 'c' })
  const isEmpty = async () => (await store.rows('SELECT seq FROM heddle_delivery LIMIT 1')).length === 0
  await until(isEmpty, 'an empty log', 60_000)
  assert.equal(await third.stop(), 0)
})

test('EVENT_BUS_MAX_STORED: a process sees within seconds what others settle, however many rows are stored', async (t) => {
  const store = await onPostgres(t)
  if (store === null) return
  const env = { EVENT_BUS_DRIVER: 'database', EVENT_BUS_MAX_STORED: '12000' }
  const first = await store.start(env)
  assert.equal(await first.stop(), 0)
  await store.rows(
    `INSERT INTO heddle_delivery (grp, slot, thread, event_id, event, envelope, payload, due_ms)
     SELECT (SELECT min(id) FROM heddle_group), 0, 1, 'evt_' || n, 'order.taken', '', '{}', 9000000000000 FROM generate_series(1, 13000) AS n`,
  )
  const second = await store.start(env)
  const publish = async () =>
    (await post(second, '/events', { event: 'order.taken', payload: { id: 'a' } })).error ?? ''
  // They are counted once it serves.
  await until(async () => /^The (event store is full|service is overloaded)/.test(await publish()), 'no room')
  // It has counted them once more.
  await sleep(3000)
  // As others do.
  await store.rows('DELETE FROM heddle_delivery')
  await until(async () => (await publish()) === '', 'there is room again', 20_000)
  assert.equal(await second.stop(), 0)
})
