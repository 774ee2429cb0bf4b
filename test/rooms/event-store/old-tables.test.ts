import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { handledBy, isEmpty, type LogStore, onSqlite, STORES } from './databases.ts'

const DATABASE = { EVENT_BUS_DRIVER: 'database' }
const GROUP = 'shop.ParkOrders.onShipped'
const ENVELOPE = '[null,null,"","shop.TakeOrders",1700000000000,"id"]'
const LATER_MS = 60_000
/** Longer than a start takes: the retry is not due when its tables are taken over. */
const AGAIN_MS = 8000

/** As version 2 had them. */
const OLD = (isFile: boolean): string[] => [
  `CREATE TABLE heddle_event (
    seq ${isFile ? 'INTEGER' : 'BIGINT'} PRIMARY KEY, id TEXT NOT NULL, event TEXT NOT NULL, envelope TEXT NOT NULL, payload TEXT NOT NULL, key TEXT,
    due_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL, is_split SMALLINT NOT NULL DEFAULT 0)`,
  'CREATE INDEX heddle_event_due ON heddle_event (due_ms, seq) WHERE due_ms > 0',
  `CREATE TABLE heddle_delivery (
    seq BIGINT NOT NULL, grp TEXT NOT NULL, attempt INTEGER NOT NULL, deaths INTEGER NOT NULL, due_ms BIGINT NOT NULL,
    error TEXT NOT NULL, PRIMARY KEY (seq, grp))`,
  'CREATE INDEX heddle_delivery_absent ON heddle_delivery (grp, seq) WHERE due_ms < 0',
  'CREATE TABLE heddle_group (event TEXT NOT NULL, grp TEXT NOT NULL, seen_ms BIGINT NOT NULL, PRIMARY KEY (event, grp))',
  'ALTER TABLE heddle_dead DROP COLUMN place',
  "UPDATE heddle_log SET value = 2 WHERE name = 'version'",
  ...(isFile
    ? []
    : [
        'ALTER TABLE heddle_event ADD owner BIGINT NOT NULL DEFAULT 0, ADD ord BIGINT NOT NULL DEFAULT 0, ADD recovered INTEGER NOT NULL DEFAULT 0',
        `CREATE TABLE heddle_process (
          epoch BIGINT PRIMARY KEY, replica TEXT NOT NULL, identity TEXT NOT NULL, expires_at TIMESTAMPTZ NOT NULL, adopter BIGINT,
          is_clean SMALLINT NOT NULL DEFAULT 0, is_ready SMALLINT NOT NULL DEFAULT 0, knows BIGINT NOT NULL DEFAULT 0)`,
        'CREATE SEQUENCE heddle_epoch AS INTEGER',
        'CREATE SEQUENCE heddle_position',
        'CREATE SEQUENCE heddle_order',
        'CREATE TABLE heddle_copy (reader BIGINT NOT NULL, number BIGINT NOT NULL, PRIMARY KEY (reader, number))',
        'CREATE TABLE heddle_slot (slot INTEGER PRIMARY KEY, holder BIGINT NOT NULL DEFAULT 0, heir BIGINT NOT NULL DEFAULT 0)',
        "INSERT INTO heddle_process (epoch, replica, identity, expires_at) VALUES (1, 'old', '{}', now() + interval '1 hour')",
      ]),
]
const NEW_TABLES = {
  file: ['delivery', 'group', 'parked'],
  server: ['delivery', 'group', 'parked', 'member', 'member_group', 'slot'],
}

/** Makes the tables of version 2, without a row. @returns the groups that the fixture has, and what stores an event and returns its number */
async function asVersion2(store: LogStore) {
  const isFile = store.server === null
  const first = await store.start(DATABASE)
  await first.stop()
  const groups = await store.rows<{ event: string; grp: string }>('SELECT event, grp FROM heddle_group')
  for (const table of NEW_TABLES[isFile ? 'file' : 'server']) await store.rows(`DROP TABLE heddle_${table}`)
  if (!isFile) await store.rows('DROP SEQUENCE heddle_delivery_seq')
  for (const sql of OLD(isFile)) await store.rows(sql)
  let seq = 0
  const event = async (name: string, id: string, { key = null as string | null, dueMs = 0, isSplit = 0 } = {}) => {
    const json = key === null ? 'NULL' : `'"${key}"'`
    await store.rows(
      `INSERT INTO heddle_event VALUES (${++seq}, 'evt_${id}', '${name}', '${ENVELOPE}', '{"id":"${id}"}', ${json}, ${dueMs}, 0, ${isSplit})`,
    )
    return seq
  }
  return { isFile, groups, event }
}

const oldHaveEnded = (store: LogStore) => store.rows("UPDATE heddle_process SET expires_at = now() - interval '1 s'")

for (const [database, storeOf] of STORES)
  test(`the tables of the release before are taken over, with all that waits in them (${database})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return
    const { isFile, groups, event } = await asVersion2(store)
    for (const { event: name, grp } of groups)
      await store.rows(`INSERT INTO heddle_group VALUES ('${name}', '${grp}', ${Date.now()})`)
    await event('order.taken', 'plain')
    await event('order.taken', 'later', { dueMs: Date.now() + LATER_MS })
    const tried = await event('order.taken', 'tried', { isSplit: 1 })
    const [taken] = groups.filter(({ event: name }) => name === 'order.taken')
    await store.rows(`INSERT INTO heddle_delivery VALUES (${tried}, '${taken!.grp}', 3, 0, ${Date.now()}, 'twice')`)
    // Of two groups one is done, and the other waits behind a dead letter of its key.
    await store.rows(
      `INSERT INTO heddle_dead (id, event_id, event, grp, subscriber, key, envelope, payload, error, attempts, bytes, at_ms, is_parked)
     VALUES ('dl_1', 'evt_bad', 'order.shipped', '${GROUP}', 'shop.ParkOrders', '"van"', '${ENVELOPE}', '{"id":"bad"}', 'No van', 1, 1, 1, 1)`,
    )
    const behind = await event('order.shipped', 'behind', { key: 'van', isSplit: 1 })
    await store.rows(`INSERT INTO heddle_delivery VALUES (${behind}, '${GROUP}', 1, 0, 0, '')`)

    // The first of its key is tried again soon, and the second has not been handed to anybody.
    const again = await event('order.shipped', 'again', { key: 'bike', isSplit: 1 })
    await store.rows(
      `INSERT INTO heddle_delivery VALUES (${again}, '${GROUP}', 2, 0, ${Date.now() + AGAIN_MS}, 'once')`,
    )
    await event('order.shipped', 'next', { key: 'bike' })
    const refused = await store.start({ ...DATABASE, DB_AUTO_MIGRATE: 'false' })
    const message = 'the event store is not open: its tables are missing'
    await until(() => refused.logs.some(({ msg }) => msg.startsWith(message)), 'a refusal')
    await refused.stop()
    if (!isFile) {
      const early = await store.start({ ...DATABASE, REPLICA_ID: 'early' })
      const inUse = /The process old of an older release uses the event store/
      await until(() => early.logs.some(({ msg }) => inUse.test(msg)), 'the reason')
      await early.stop()
      await oldHaveEnded(store)
    }
    const second = await store.start(DATABASE)
    await until(async () => (await handledBy(second)).length === 4, 'what was due')
    const attempts = (await handledBy(second)).map(({ order_id, attempt }) => `${order_id} ${attempt}`)
    assert.deepEqual(attempts.sort(), ['plain 1', 'plain after 1', 'tried 3', 'tried after 1'])
    const shippedOf = (...ids: string[]) =>
      second.logs.flatMap(({ msg, id }) => (msg === 'shipping' && ids.includes(String(id)) ? [id] : []))
    const shipped = () => shippedOf('bad', 'behind')
    assert.deepEqual(shipped(), [])
    assert.equal((await post(second, '/dead-letters/dl_1/replay')).done, true)
    await until(() => shipped().length === 2, 'the key goes on')
    assert.deepEqual(shipped(), ['bad', 'behind'])
    await until(() => shippedOf('again', 'next').length === 2, 'the retry, and what waits behind it')
    assert.deepEqual(shippedOf('again', 'next'), ['again', 'next'])
    const left = () => store.rows<{ event_id: string }>('SELECT event_id FROM heddle_delivery')
    await until(async () => (await left()).length === 1, 'what was handled is gone')
    assert.deepEqual(await left(), [{ event_id: 'evt_later' }])
    await store.rows('UPDATE heddle_delivery SET due_ms = 1')
    await second.stop()
    const third = await store.start(DATABASE)
    await until(async () => (await handledBy(third)).length === 6, 'what was for later')
    await isEmpty(store)
    assert.equal(await third.stop(), 0)
  })

for (const [database, storeOf] of STORES)
  test(`events of the release before that wait for a broker go to the groups without one (${database})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return
    // With a broker no groups were stored.
    const { isFile, event } = await asVersion2(store)
    await event('order.taken', 'now')
    await event('order.taken', 'later', { dueMs: Date.now() + 2000 })
    if (!isFile) await oldHaveEnded(store)
    const heddle = await store.start(DATABASE)
    await until(async () => (await handledBy(heddle)).length === 4, 'both handled')
    await isEmpty(store)
  })

test('tables are not changed while another process uses them', async (t) => {
  const store = (await onSqlite(t))!
  const first = await store.start(DATABASE)
  await store.rows("UPDATE heddle_log SET value = 2 WHERE name = 'version'")
  const { child, errors } = await store.spawn(DATABASE)
  const [code] = await once(child, 'close')
  assert.equal(code, 78)
  assert.match(errors.join(''), /Another process has the event store of this database file/)
  const [version] = await store.rows<{ value: number }>("SELECT value FROM heddle_log WHERE name = 'version'")
  assert.equal(version!.value, 2)
  assert.equal(await first.stop(), 0)
})
