/** Many subscribers of one event, and others that go on meanwhile. By hand with 10,000 on PostgreSQL, too, whose start asks the server for each. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { isEmpty, type LogStore, onPostgres, onSqlite } from './databases.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/crowded', import.meta.url))
const PATIENCE_MS = 120_000
/** The longest text that fits into a payload. */
const LONGEST = 2 ** 20 - '{"text":""}'.length

interface Told {
  groups: number
  events: number
  bytes: number
  others: number
}

const startWith = (store: LogStore, groups: number, driver: string): Promise<Heddle> =>
  store.start({
    LANE_ENV: 'GROUPS',
    GROUPS: String(groups),
    EVENT_BUS_DRIVER: driver,
    EVENT_BUS_MAX_SUBSCRIPTIONS: '20000',
    // On PostgreSQL it gives back 16 slots of each group: some 11 s for 2,000.
    SHUTDOWN_TIMEOUT_MS: '60000',
  })

const toldOf = async (heddle: Heddle): Promise<Told> => (await heddle.json('/told')).body

/** Publishes for the other subscriber one after another, until `work` is done. @returns how many were accepted */
async function besideOthers(heddle: Heddle, work: () => Promise<unknown>): Promise<number> {
  let isOver = false
  let accepted = 0
  const others = (async () => {
    while (!isOver) if ((await heddle.post('/tell-other')).status === 200) accepted++
  })()
  await work().finally(() => {
    isOver = true
  })
  await others
  return accepted
}

const STORES: [name: string, driver: string, groups: number, make: (t: TestContext) => Promise<LogStore | null>][] = [
  ['in process', 'in_process', 10_000, (t) => onSqlite(t, DOMAINS)],
  ['on SQLite', 'database', 10_000, (t) => onSqlite(t, DOMAINS)],
  ['on PostgreSQL', 'database', 2000, (t) => onPostgres(t, false, DOMAINS)],
]

for (const [name, driver, groups, make] of STORES)
  test(`${name} each of ${groups} groups handles an event once, and another subscriber goes on meanwhile`, async (t) => {
    const store = await make(t)
    if (store === null) return
    const heddle = await startWith(store, groups, driver)
    const startMs = performance.now()
    const accepted = await besideOthers(heddle, async () => {
      assert.equal((await heddle.post('/tell', { length: 10 })).status, 200)
      await until(async () => (await toldOf(heddle)).groups === groups, 'all groups', PATIENCE_MS)
    })
    t.diagnostic(`all groups after ${Math.round(performance.now() - startMs)} ms, ${accepted} events of the other one`)
    await until(async () => (await toldOf(heddle)).others === accepted, 'events of the other subscriber')
    assert.equal((await toldOf(heddle)).events, groups)
    if (driver === 'database') await isEmpty(store)
    assert.equal(await heddle.stop(), 0)
  })

test('in process a payload at its limit for 1,000 groups is refused, with what it would take, and others go on', async (t) => {
  const store = (await onSqlite(t, DOMAINS))!
  const heddle = await startWith(store, 1000, 'in_process')
  const { status, body } = await heddle.post('/tell', { length: LONGEST })
  assert.deepEqual([status, body.success], [503, false])
  assert.match(body.error, /^The event queue is full: .* and 1048576000 more have no room$/)
  assert.equal((await heddle.post('/tell-other')).status, 200)
  await until(async () => (await toldOf(heddle)).others === 1, 'the event of the other subscriber')
  assert.deepEqual(await toldOf(heddle), { groups: 0, events: 0, bytes: 0, others: 1 })
  assert.equal(await heddle.stop(), 0)
})

for (const [name, driver, , make] of STORES.slice(1)) {
  test(`${name} a payload at its limit reaches 60 groups once each, and then others go on`, async (t) => {
    const store = await make(t)
    if (store === null) return
    const heddle = await startWith(store, 60, driver)
    assert.equal((await heddle.post('/tell', { length: LONGEST })).status, 200)
    await until(async () => (await toldOf(heddle)).groups === 60, 'all groups', PATIENCE_MS)
    await until(async () => (await heddle.post('/tell-other')).status === 200, 'room for others', PATIENCE_MS)
    await until(async () => (await toldOf(heddle)).others > 0, 'an event of the other subscriber')
    await isEmpty(store)
    const { groups, events, bytes } = await toldOf(heddle)
    assert.deepEqual([groups, events, bytes], [60, 60, 60 * LONGEST])
    assert.equal(await heddle.stop(), 0)
  })

  test(`${name} a payload at its limit for 1,000 groups is refused, with what it would take, and others go on`, async (t) => {
    const store = await make(t)
    if (store === null) return
    const heddle = await startWith(store, 1000, driver)
    const accepted = await besideOthers(heddle, async () => {
      for (const isInTransaction of [false, true]) {
        const { status, body } = await heddle.post('/tell', { length: LONGEST, isInTransaction })
        assert.deepEqual([status, body.code], [200, 'EVENT_PAYLOAD_TOO_LARGE'])
        assert.equal(
          body.message,
          'The payload of crowd.told has 1048576 bytes and would be stored for 1000 subscribers: 1048576000 bytes; 67108864 are allowed',
        )
      }
    })
    // What fits is stored for all.
    assert.equal((await heddle.post('/tell', { length: 60_000, isInTransaction: true })).status, 200)
    await until(async () => (await toldOf(heddle)).groups === 1000, 'all groups', PATIENCE_MS)
    await until(async () => (await toldOf(heddle)).others === accepted, 'the events of the other subscriber')
    const { events, bytes } = await toldOf(heddle)
    assert.deepEqual([events, bytes], [1000, 1000 * 60_000])
    await isEmpty(store)
    assert.equal(await heddle.stop(), 0)
  })

  test(`${name} a payload that is refused is not stored, though its transaction did not wait for it`, async (t) => {
    const store = await make(t)
    if (store === null) return
    const heddle = await startWith(store, 70, driver)
    assert.equal((await heddle.post('/tell-unawaited', { length: LONGEST })).body.code, 'EVENT_PAYLOAD_TOO_LARGE')
    assert.equal((await heddle.post('/tell', { length: 10 })).status, 200)
    await until(async () => (await toldOf(heddle)).groups === 70, 'all groups', PATIENCE_MS)
    await isEmpty(store)
    assert.equal((await toldOf(heddle)).events, 70)
    assert.equal(await heddle.stop(), 0)
  })

  test(`${name} events at their limit are taken up to 128 MiB at once, 64 of a transaction, and the lane lives`, async (t) => {
    const store = await make(t)
    if (store === null) return
    const heddle = await startWith(store, 1, driver)
    const told = { length: LONGEST, count: 200 }
    assert.deepEqual((await heddle.post('/tell-many', told)).body, { accepted: 128, EVENT_BUS_FULL: 72 })
    const inTransaction = { accepted: 64, EVENT_PAYLOAD_TOO_LARGE: 136 }
    assert.deepEqual((await heddle.post('/tell-many', { ...told, isInTransaction: true })).body, inTransaction)
    // All are handled. Meanwhile its requests have a lane of their own: it has blocked its lane.
    await isEmpty(store)
    assert.deepEqual(await store.rows('SELECT id FROM heddle_dead'), [])
    assert.ok(!heddle.logs.some(({ msg }) => / died: /.test(msg)))
    assert.equal(await heddle.stop(), 0)
  })

  test(`${name} a transaction may publish 60,000 small events`, async (t) => {
    const store = await make(t)
    if (store === null) return
    const heddle = await startWith(store, 1, driver)
    const told = { length: 200, count: 60_000, isInTransaction: true }
    assert.deepEqual((await heddle.post('/tell-many', told)).body, { accepted: 60_000 })
    await isEmpty(store)
    assert.equal(await heddle.stop(), 0)
  })
}
