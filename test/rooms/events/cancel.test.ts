/** Events that are taken back: those that wait are gone, those that run are told, in all processes. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { onPostgres, onSqlite } from '../event-store/databases.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/signals', import.meta.url))

interface Seen {
  name: string
  reason: string | null
}

const seenBy = async (heddle: Heddle): Promise<Seen[]> =>
  (await heddle.json('/seen')).body.seen.map(({ name, reason }: Seen) => ({ name, reason }))
const publish = async (heddle: Heddle, name: string, more: object = {}): Promise<string> =>
  (await heddle.post('/work', { event: 'work.slow', name, ...more })).body.id
const cancel = async (heddle: Heddle, what: object) => (await heddle.post('/cancel', what)).body
const hasBegun = (heddle: Heddle, name: string): boolean => heddle.logs.some(({ msg }) => msg === `${name} has begun`)

const STARTS: [string, (t: TestContext) => Promise<(() => Promise<Heddle>) | null>][] = [
  [
    'in memory',
    async (t) => () => startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { EVENT_BUS_DRIVER: 'in_process' } }),
  ],
  ['SQLite', async (t) => (await onSqlite(t, DOMAINS))!.start],
  ['PostgreSQL', async (t) => (await onPostgres(t, false, DOMAINS))?.start ?? null],
]

for (const [where, startOf] of STARTS) {
  test(`what runs is told, what waits never begins, and what was not meant goes on (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    const running = await publish(heddle, 'running')
    const waiting = await publish(heddle, 'waiting')
    const delayed = await publish(heddle, 'delayed', { delayMs: 600_000 })
    await publish(heddle, 'other')
    await until(() => hasBegun(heddle, 'running'), 'the first handler')
    assert.deepEqual(await cancel(heddle, { id: waiting }), { waiting: 1, running: 0 })
    assert.deepEqual(await cancel(heddle, { id: delayed }), { waiting: 1, running: 0 })
    assert.deepEqual(await cancel(heddle, { id: running }), { waiting: 0, running: 1 })
    await until(async () => (await seenBy(heddle)).length === 1, 'the end of the first handler')
    assert.deepEqual(await seenBy(heddle), [{ name: 'running', reason: 'cancelled' }])
    await until(() => hasBegun(heddle, 'other'), 'the next handler')
    assert.deepEqual(await cancel(heddle, { id: running }), { waiting: 0, running: 0 })
    assert.equal(hasBegun(heddle, 'waiting'), false)
    assert.deepEqual((await heddle.json('/seen')).body.dead, [])
  })

  test(`all events of a name, or of one key alone, are taken back (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    for (const key of ['a', 'b'])
      for (const n of [1, 2, 3]) await publish(heddle, `${key}${n}`, { key, ...(n === 3 ? { delayMs: 600_000 } : {}) })
    await until(() => hasBegun(heddle, 'a1'), 'the first handler')
    assert.deepEqual(await cancel(heddle, { event: 'work.slow', key: 'a' }), { waiting: 2, running: 1 })
    await until(() => hasBegun(heddle, 'b1'), 'the first handler of the other key')
    assert.deepEqual(await cancel(heddle, { event: 'work.slow' }), { waiting: 2, running: 1 })
    await until(async () => (await seenBy(heddle)).length === 2, 'the ends of the handlers')
    await publish(heddle, 'later')
    await until(() => hasBegun(heddle, 'later'), 'an event after that')
    assert.equal(hasBegun(heddle, 'a2') || hasBegun(heddle, 'b2'), false)
  })
}

for (const [where, storeOf] of [
  ['SQLite', (t: TestContext) => onSqlite(t, DOMAINS)],
  ['PostgreSQL', (t: TestContext) => onPostgres(t, false, DOMAINS)],
] as const) {
  test(`what a transaction takes back is gone with its commit, and what it publishes then is there (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    for (const name of ['running', 'waiting']) await publish(heddle, name, { key: 'k' })
    await publish(heddle, 'delayed', { key: 'k', delayMs: 600_000 })
    await until(() => hasBegun(heddle, 'running'), 'the first handler')
    assert.equal((await heddle.post('/move', { key: 'k', name: 'never', fails: true })).status, 500)
    await pause(300)
    assert.deepEqual(await seenBy(heddle), [])
    assert.deepEqual((await heddle.post('/move', { key: 'k', name: 'moved' })).body, { taken: 4 })
    await until(() => hasBegun(heddle, 'moved'), 'the handler of the new one')
    assert.deepEqual(await seenBy(heddle), [{ name: 'running', reason: 'cancelled' }])
    for (const name of ['waiting', 'dropped', 'never']) assert.equal(hasBegun(heddle, name), false, name)
    assert.equal((await store.rows('SELECT seq FROM heddle_delivery')).length, 1)
  })
}

test('a cancel reaches handlers, and what waits, in another process', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no PostgreSQL')
  const processes = [await store.start({ REPLICA_ID: 'a' }), await store.start({ REPLICA_ID: 'b' })]
  const [first, second] = processes as [Heddle, Heddle]
  await until(
    async () => (await store.rows('SELECT DISTINCT member FROM heddle_slot WHERE member IS NOT NULL')).length === 2,
    'slots of both',
  )
  const names = Array.from({ length: 40 }, (_, n) => `e${n}`)
  for (const name of names) await publish(first, name)
  const begun = (): string[] => names.filter((name) => processes.some((heddle) => hasBegun(heddle, name)))
  await until(() => begun().length === 2, 'a handler in each process')
  const startMs = performance.now()
  assert.deepEqual(await cancel(first, { event: 'work.slow' }), { waiting: 38, running: 2 })
  await until(async () => (await Promise.all(processes.map(seenBy))).flat().length === 2, 'the ends of both handlers')
  t.diagnostic(`told after ${Math.round(performance.now() - startMs)} ms`)
  await pause(500)
  assert.equal(begun().length, 2)
  assert.deepEqual((await second.json('/seen')).body.dead, [])
})

test('over Redis Streams a cancel reaches what is in hand, what is not read yet, and handlers in another process', async (t) => {
  const redis = await redisServer(t, { own: true })
  if (redis === null) return t.skip('no Redis')
  const env = { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
  const start = (id: string) => startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { ...env, REPLICA_ID: id } })
  const first = await start('a')
  const second = await start('b')
  const names = Array.from({ length: 200 }, (_, n) => `e${n}`)
  for (const name of names) await publish(first, name)
  const begun = (): string[] => names.filter((name) => [first, second].some((heddle) => hasBegun(heddle, name)))
  await until(() => begun().length === 2, 'a handler in each process')
  const { waiting, running } = await cancel(first, { event: 'work.slow' })
  assert.ok(waiting > 0 && running === 1, `${waiting} waiting, ${running} running`)
  await until(
    async () => (await Promise.all([first, second].map(seenBy))).flat().length === 2,
    'the ends of both handlers',
  )
  await pause(500)
  assert.equal(begun().length, 2)
  await publish(first, 'later')
  await until(() => [first, second].some((heddle) => hasBegun(heddle, 'later')), 'an event after that')
})
