/** What only the store on a file has to stand. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import type { Heddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { testWith } from '../../support/test-with.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, kill, onSqlite } from './databases.ts'

const DATABASE = { EVENT_BUS_DRIVER: 'database' }
const PARKED_GROUP = "SELECT id FROM heddle_group WHERE grp = 'shop.ParkOrders.onShipped'"
const ENVELOPE = '[null,null,"","shop.TakeOrders",1700000000000,"id"]'
const COLUMNS = 'grp, thread, event_id, event, envelope, payload'

const testOn = testWith(onSqlite)

const lettersOf = async (heddle: Heddle): Promise<{ id: string; parked?: boolean }[]> =>
  (await heddle.json('/dead-letters')).body.letters

testOn('what waits for a dead letter counts once, however often it is read', async (store) => {
  const heddle = await store.start({ ...DATABASE, HOLD: 'fail shipping', EVENT_BUS_MAX_STORED: '60' })
  const ship = (id: string, key?: string) =>
    post(heddle, '/events', { event: 'order.shipped', payload: { id }, options: key === undefined ? {} : { key } })
  await ship('bad')
  await ship('bad', 'van 1')
  for (let n = 0; n < 10; n++) await ship(`order ${n}`, 'van 1')
  for (let n = 0; n < 5; n++) {
    const letter = await until(
      async () => (await lettersOf(heddle)).find(({ parked }) => parked !== true),
      'the letter',
    )
    assert.equal((await post(heddle, `/dead-letters/${letter.id}/replay`)).done, true)
    const isReplayed = async () => (await lettersOf(heddle)).some(({ id, parked }) => parked !== true && id > letter.id)
    await until(isReplayed, 'the replay has failed')
  }
  assert.equal((await ship('other', 'van 2')).error, undefined)
})

testOn('a process is known to have died of what it had behind the rows of blocked keys', async (store) => {
  const first = await store.start({ ...DATABASE, HOLD: 'fail shipping' })
  await post(first, '/events', { event: 'order.shipped', payload: { id: 'bad' }, options: { key: 'van 1' } })
  await until(async () => (await lettersOf(first)).length === 1, 'the letter')
  await kill(first)
  const insert = (count: number, id: string, key: string) =>
    store.rows(
      `INSERT INTO heddle_delivery (${COLUMNS}, key) WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < ${count})
       SELECT (${PARKED_GROUP}), 1, 'evt_' || n, 'order.shipped', '${ENVELOPE}', '{"id":"${id}"}', ${key} FROM n`,
    )
  await insert(1100, 'behind', `'"van 1"'`)
  await insert(1, 'deadly', 'NULL')
  // Nobody takes them.
  const second = await store.start({ ...DATABASE, HOLD: 'no shipping' })
  await kill(second)
  assert.deepEqual(await store.rows('SELECT key, crashes FROM heddle_delivery WHERE crashes > 0'), [
    { key: null, crashes: 1 },
  ])
})

testOn('where shares take turns, a process is known to have died of the first of any share', async (store) => {
  const first = await store.start({ ...DATABASE, HOLD: 'fail shipping' })
  await kill(first)
  const insert = (count: number, share: string) =>
    store.rows(
      `INSERT INTO heddle_delivery (${COLUMNS}, share) WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < ${count})
       SELECT (${PARKED_GROUP}), 1, 'evt_' || n, 'order.shipped', '${ENVELOPE}', '{"id":"some"}', '${share}' FROM n`,
    )
  await insert(3000, '1["large"]')
  await insert(1, '1["small"]')
  const second = await store.start({ ...DATABASE, HOLD: 'no shipping' })
  await kill(second)
  const counted = 'SELECT share, count(*) AS count, max(crashes) AS most FROM heddle_delivery WHERE crashes > 0'
  assert.deepEqual(await store.rows(`${counted} GROUP BY share ORDER BY share`), [
    { share: '1["large"]', count: 1024, most: 1 },
    { share: '1["small"]', count: 1, most: 1 },
  ])
})

/** Rows that somebody else has written. */
const FOREIGN: Record<string, string> = {
  'a place that is no number': "place) VALUES (%, 'behind')",
  'a place behind all others': 'place) VALUES (%, 9223372036854775807)',
  'a time that is no time': "due_ms) VALUES (%, 'later')",
}

for (const [name, values] of Object.entries(FOREIGN))
  testOn(`a row with ${name} holds up nothing`, async (store) => {
    const heddle = await store.start(DATABASE)
    const group = "(SELECT id FROM heddle_group WHERE event = 'order.taken' ORDER BY id LIMIT 1)"
    const row = `${group}, 1, 'evt_odd', 'order.taken', '${ENVELOPE}', '{"id":"odd"}'`
    await store.rows(`INSERT INTO heddle_delivery (${COLUMNS}, ${values.replace('%', row)}`)
    for (const id of ['first', 'second']) {
      await post(heddle, '/orders', { id })
      await until(async () => (await handledBy(heddle)).some(({ order_id }) => order_id === id), id)
    }
    await store.rows("DELETE FROM heddle_delivery WHERE event_id = 'evt_odd'")
    await isEmpty(store)
    assert.equal(await heddle.stop(), 0)
  })

testOn('what is accepted before the groups are stored has them all the same', async (store) => {
  const first = await store.start(DATABASE)
  await first.stop()
  await store.rows('DELETE FROM heddle_group')
  const file = new Database(store.path!)
  const starting = store.start(DATABASE)
  starting.catch(() => {})
  await until(async () => (await store.rows("SELECT 1 FROM heddle_log WHERE name = 'in_use'")).length > 0, 'the store')
  file.exec('BEGIN IMMEDIATE')
  // Longer than a start waits for its groups.
  const released = sleep(6500).then(() => file.exec('COMMIT').close())
  const heddle = await starting
  const accepted: string[] = []
  const publish = async (id: string): Promise<void> => {
    const { error } = await post(heddle, '/events', { event: 'order.taken', payload: { id } })
    if (error === undefined) accepted.push(id)
  }
  const publishing: Promise<void>[] = []
  for (let isOver = false; !isOver; await sleep(50)) {
    isOver = !file.open
    publishing.push(publish(`order ${publishing.length}`))
  }
  await Promise.all([released, ...publishing])
  assert.ok(accepted.length > 0)
  const missing = async (): Promise<string[]> => {
    const handled = new Set((await handledBy(heddle)).map(({ order_id }) => order_id))
    return accepted.filter((id) => !handled.has(id))
  }
  await until(async () => (await missing()).length === 0, 'all that was accepted')
})

testOn('what runs alone as its process ends in order has died of nothing', async (store) => {
  const held = { ...DATABASE, HOLD: 'wait', SHUTDOWN_TIMEOUT_MS: '500' }
  const first = await store.start(held)
  await post(first, '/events', { event: 'order.taken', payload: { id: 'long' } })
  await kill(first)
  await store.rows('UPDATE heddle_delivery SET crashes = 3')
  const deaths = async () =>
    (await store.rows<{ deaths: number }>('SELECT deaths FROM heddle_delivery ORDER BY deaths')).map(
      (row) => row.deaths,
    )
  const second = await store.start(held)
  await until(async () => (await deaths()).at(-1) === 1, 'a trial')
  assert.equal(await second.stop(), 0)
  assert.equal((await deaths()).at(-1), 0)
})
