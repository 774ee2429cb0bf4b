/** An event that is taken back with everything that it has caused. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { kill, onPostgres, onSqlite } from '../event-store/databases.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/trees', import.meta.url))

interface Seen {
  begun: string[]
  ids: Record<string, string>
  reasons: Record<string, string>
  dead: { id: string; error: string }[]
  replays: { outcome: string; error?: string }[]
}

const seenBy = async (heddle: Heddle): Promise<Seen> => (await heddle.json('/seen')).body
const grow = async (heddle: Heddle, branch: object): Promise<string> => (await heddle.post('/grow', branch)).body.id
const cancel = async (heddle: Heddle, id: string, more: object = {}) =>
  (await heddle.post('/cancel', { id, ...more })).body
const haveBegun = (heddles: readonly Heddle[], names: readonly string[]) =>
  until(
    () => names.every((name) => heddles.some(({ logs }) => logs.some(({ msg }) => msg === `${name} has begun`))),
    `the handlers of ${names.join(', ')}`,
  )
const LONG = { delayMs: 600_000 }

/** Three generations over several names: of the last two some have ended, run, wait, are delayed, or are between two attempts. */
const TREE = {
  name: 'root',
  children: [
    {
      name: 'ended',
      children: [
        {
          name: 'runs',
          stays: true,
          late: [
            { name: 'late', children: [{ name: 'later' }] },
            { name: 'late delayed', delayMs: 500 },
            { name: 'late keyed', key: 'k' },
          ],
        },
        { name: 'delayed', ...LONG },
        { name: 'tried', event: 'tree.tries', fails: true },
        {
          name: 'ended too',
          children: [
            { name: 'queued', event: 'tree.queues' },
            { name: 'deep', stays: true },
            { name: 'keyed', key: 'k', ...LONG },
          ],
        },
      ],
    },
    { name: 'delayed child', ...LONG },
  ],
}
const NEVER = ['delayed', 'queued', 'keyed', 'delayed child', 'late', 'later', 'late delayed', 'late keyed']

const STARTS: [string, (t: TestContext) => Promise<(() => Promise<Heddle>) | null>][] = [
  [
    'in memory',
    async (t) => () => startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { EVENT_BUS_DRIVER: 'in_process' } }),
  ],
  ['SQLite', async (t) => (await onSqlite(t, DOMAINS))!.start],
  ['PostgreSQL', async (t) => (await onPostgres(t, false, DOMAINS))?.start ?? null],
  [
    'Redis Streams',
    async (t) => {
      const redis = await redisServer(t, { own: true })
      const env = { ...redis?.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
      return redis === null ? null : () => startHeddle(t, { domains: [DOMAINS], lanes: 1, env })
    },
  ],
]

for (const [where, startOf] of STARTS)
  test(`of three generations nothing begins any more, what runs is told, and what it still publishes is gone (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    const other = await grow(heddle, {
      name: 'other',
      event: 'tree.queues',
      stays: true,
      late: [{ name: 'child of other' }],
    })
    await haveBegun([heddle], ['other'])
    const root = await grow(heddle, TREE)
    await haveBegun([heddle], ['runs', 'tried', 'deep'])
    await until(() => heddle.logs.some(({ msg }) => String(msg).includes('tried fails')), 'the first attempt')
    await pause(300)
    assert.deepEqual(await cancel(heddle, root, { causedToo: false }), { waiting: 0, running: 0 })
    assert.deepEqual(await cancel(heddle, root), { waiting: 5, running: 2 })
    await until(() => heddle.logs.some(({ msg }) => msg === 'runs has ended'), 'its end')
    await pause(1500)
    assert.deepEqual(await cancel(heddle, other), { waiting: 0, running: 1 })
    const { begun, reasons, dead } = await seenBy(heddle)
    for (const name of NEVER) assert.equal(begun.includes(name), false, name)
    assert.deepEqual(reasons, {
      runs: 'cancelled',
      deep: 'cancelled',
      ...(reasons.other ? { other: 'cancelled' } : {}),
    })
    assert.deepEqual(dead, [])
    // Those who are not of it go on.
    await grow(heddle, { name: 'next', event: 'tree.queues' })
    await haveBegun([heddle], ['next'])
  })

for (const [where, startOf] of STARTS)
  test(`a dead letter that is replayed after the cancel runs, and what it causes, until the next cancel (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    const causes = { event: 'tree.dies', failsOnce: true }
    const children = [
      { name: 'ended', children: [{ name: 'leaf', ...causes, children: [{ name: 'of leaf', stays: true }] }] },
    ]
    for (const root of [
      { name: 'root', children },
      { name: 'top', ...causes, children: [{ name: 'of top', stays: true }] },
    ]) {
      const id = await grow(heddle, root)
      await until(async () => (await seenBy(heddle)).dead.length === 1, 'the dead letter')
      assert.deepEqual(await cancel(heddle, id), { waiting: 0, running: 0 })
      const [letter] = (await seenBy(heddle)).dead
      assert.deepEqual((await heddle.post('/replay', { id: letter!.id })).body, { replayed: true })
      await haveBegun([heddle], [root.name === 'root' ? 'of leaf' : 'of top'])
      assert.deepEqual(await cancel(heddle, id), { waiting: 0, running: 1 })
    }
    assert.deepEqual((await seenBy(heddle)).dead, [])
  })

const FILE_OR_SERVER = [
  ['SQLite', (t: TestContext) => onSqlite(t, DOMAINS)],
  ['PostgreSQL', (t: TestContext) => onPostgres(t, false, DOMAINS)],
] as const

for (const [where, storeOf] of FILE_OR_SERVER) {
  test(`a transaction takes a tree back with its commit, and what it has published there, too (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    const children = [
      { name: 'runs', event: 'tree.commits', children: [{ name: 'stays', stays: true }] },
      { name: 'delayed', ...LONG },
    ]
    const root = await grow(heddle, { name: 'root', children: [{ name: 'ended', children }] })
    await haveBegun([heddle], ['stays'])
    assert.equal((await heddle.post('/cancel-in-transaction', { id: root, fails: true })).status, 500)
    await pause(300)
    assert.deepEqual((await seenBy(heddle)).reasons, {})
    assert.equal((await store.rows('SELECT seq FROM heddle_delivery')).length, 2)
    const { body } = await heddle.post('/cancel-in-transaction', { id: root, child: { name: 'of the request' } })
    assert.deepEqual(body, { taken: 2 })
    await until(async () => (await seenBy(heddle)).reasons.stays === 'cancelled', 'the signal')
    await haveBegun([heddle], ['of the request'])
    assert.equal((await seenBy(heddle)).begun.includes('delayed'), false)
    await until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 0, 'the end')
  })

  test(`what a tree has published late for a later time is gone when its cancel is forgotten (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    const late = [{ name: 'much later', delayMs: 3_600_000 }]
    const replayed = { name: 'dead', event: 'tree.dies', failsOnce: true, children: [{ ...late[0]!, name: 'of dead' }] }
    const root = await grow(heddle, { name: 'root', children: [{ name: 'runs', stays: true, late }, replayed] })
    await grow(heddle, { name: 'other', ...LONG })
    await haveBegun([heddle], ['runs'])
    await until(async () => (await seenBy(heddle)).dead.length === 1, 'the dead letter')
    assert.deepEqual(await cancel(heddle, root), { waiting: 0, running: 1 })
    await until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 2, 'the late event')
    await heddle.post('/replay', { id: (await seenBy(heddle)).dead[0]!.id })
    await until(
      async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 3,
      'what the replay causes',
    )
    await store.rows('UPDATE heddle_cancel SET at_ms = at_ms - 600000')
    // Once a minute.
    await until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 2, 'its end', 90_000)
    const rows = await store.rows<{ payload: string }>('SELECT payload FROM heddle_delivery')
    assert.deepEqual(rows.map(({ payload }) => JSON.parse(String(payload)).name).sort(), ['of dead', 'other'])
  })

  test(`after a crash, what its handlers had published late is not delivered (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    const late = [{ name: 'late', delayMs: 2000 }]
    const root = await grow(heddle, { name: 'root', children: [{ name: 'runs', stays: true, late }] })
    await haveBegun([heddle], ['runs'])
    await cancel(heddle, root)
    await until(() => heddle.logs.some(({ msg }) => msg === 'runs has ended'), 'its end')
    assert.equal((await store.rows('SELECT seq FROM heddle_delivery')).length, 1)
    await kill(heddle)
    const next = await store.start()
    await until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 0, 'the end of the row')
    assert.deepEqual((await seenBy(next)).begun, [])
  })

  test(`a cancel reaches sixteen generations down, and no seventeenth (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    let branch: object = { name: 'g17', ...LONG }
    for (let n = 16; n > 0; n--) branch = { name: `g${n}`, children: [branch, { name: `side${n + 1}`, ...LONG }] }
    const root = await grow(heddle, { name: 'root', children: [branch] })
    await haveBegun([heddle], ['g16'])
    await until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 17, 'the delayed ones')
    // side2 to side16; g17 and side17 are too far down.
    assert.deepEqual(await cancel(heddle, root), { waiting: 15, running: 0 })
    const { ids } = await seenBy(heddle)
    assert.deepEqual(await cancel(heddle, ids.g1!), { waiting: 2, running: 0 })
  })

  test(`a tree reaches over broadcasts, later subscribers and runs of jobs (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    await heddle.post('/late-subscriber', {})
    const children = ['tree.spreads', 'tree.temporary'].map((event) => ({
      name: event,
      event,
      children: [{ name: `child of ${event}`, stays: true }],
    }))
    const root = await grow(heddle, { name: 'root', children })
    await haveBegun([heddle], ['child of tree.spreads', 'child of tree.temporary'])
    assert.deepEqual(await cancel(heddle, root), { waiting: 0, running: 2 })
    await heddle.post('/plant', {})
    await haveBegun([heddle], ['child of planted'])
    const { ids } = await seenBy(heddle)
    assert.deepEqual(await cancel(heddle, ids.planted!), { waiting: 0, running: 1 })
  })

  test(`ten thousand descendants are gone at once, and a row of an earlier version is read (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    const many = { name: 'n', ...LONG, times: 10_000 }
    const root = await grow(heddle, { name: 'root', children: [{ name: 'ended', children: [many] }] })
    await until(
      async () =>
        Number((await store.rows<{ n: number }>('SELECT count(*) AS n FROM heddle_delivery'))[0]!.n) >= 10_000,
      'all rows',
      120_000,
    )
    const { ids } = await seenBy(heddle)
    // As earlier versions wrote them: the parent alone.
    const old = `["${ids.ended}",null,"","grow.GrowTrees",1700000000000,"name"]`
    await store.rows(
      `UPDATE heddle_delivery SET envelope = '${old}' WHERE payload LIKE '%"n77"%' OR payload LIKE '%"n78"%'`,
    )
    for (const expected of [9998, 0]) {
      const startMs = performance.now()
      assert.deepEqual(await cancel(heddle, root), { waiting: expected, running: 0 })
      t.diagnostic(`${expected}: ${Math.round(performance.now() - startMs)} ms`)
    }
    assert.deepEqual(await cancel(heddle, ids.ended!), { waiting: 2, running: 0 })
  })
}

const QUEUED = { event: 'tree.queues', unique: 'u', replace: true as const }

for (const [where, storeOf] of FILE_OR_SERVER)
  test(`what waits under a name is of whoever has replaced it last before the cancel (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    const holder = await grow(heddle, { name: 'holder', event: 'tree.queues', stays: true })
    await haveBegun([heddle], ['holder'])
    const root = await grow(heddle, {
      name: 'root',
      children: [
        { name: 'of tree', ...QUEUED },
        { name: 'runs', stays: true, late: [{ name: 'late', ...QUEUED, unique: 'v' }] },
      ],
    })
    await haveBegun([heddle], ['runs'])
    const count = `SELECT seq FROM heddle_delivery WHERE uniq LIKE 'w %'`
    await until(async () => (await store.rows(count)).length === 1, 'the row of the tree')
    // In the tree, and then not: the subscriber has it in hand all the time.
    await pause(200)
    await grow(heddle, { name: 'stranger', ...QUEUED })
    await grow(heddle, { name: 'another', ...QUEUED, unique: 'v' })
    await grow(heddle, { name: 'taken over', ...QUEUED, unique: 'x' })
    await pause(200)
    const second = await grow(heddle, { name: 'second', children: [{ name: 'takes over', ...QUEUED, unique: 'x' }] })
    await until(
      async () => (await store.rows(`${count} AND payload LIKE '%takes over%'`)).length === 1,
      'the other way',
    )
    assert.deepEqual(await cancel(heddle, root), { waiting: 0, running: 1 })
    assert.deepEqual(await cancel(heddle, second), { waiting: 1, running: 0 })
    await until(() => heddle.logs.some(({ msg }) => msg === 'runs has ended'), 'its end')
    assert.deepEqual(await cancel(heddle, holder), { waiting: 0, running: 1 })
    await haveBegun([heddle], ['stranger', 'another'])
    await until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 0, 'the end of all rows')
    const { begun } = await seenBy(heddle)
    for (const name of ['of tree', 'late', 'taken over', 'takes over']) assert.equal(begun.includes(name), false, name)
  })

test('a cancel that waits for the transaction of who replaces a row leaves it that row', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no PostgreSQL')
  const heddle = await store.start()
  const holder = await grow(heddle, { name: 'holder', event: 'tree.queues', stays: true })
  await haveBegun([heddle], ['holder'])
  const root = await grow(heddle, { name: 'root', children: [{ name: 'of tree', ...QUEUED }] })
  await until(
    async () => (await store.rows(`SELECT seq FROM heddle_delivery WHERE uniq LIKE 'w %'`)).length === 1,
    'it',
  )
  const replacing = heddle.post('/publish-in-transaction', { name: 'stranger', ...QUEUED })
  await until(() => heddle.logs.some(({ msg }) => msg === 'stranger is published'), 'the replacement')
  const cancelling = cancel(heddle, root)
  await until(
    async () =>
      (await store.rows(`SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`)).length > 0,
    'the cancel to wait',
  )
  await heddle.post('/let-go', {})
  await replacing
  assert.deepEqual(await cancelling, { waiting: 0, running: 0 })
  await cancel(heddle, holder)
  await haveBegun([heddle], ['stranger'])
})

test('a replay in one process, whose cancel and replay another has not heard of yet, runs there', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no PostgreSQL')
  const both = [await store.start({ REPLICA_ID: 'a' }), await store.start({ REPLICA_ID: 'b' })] as const
  const [first] = both
  await until(async () => (await store.rows(OWNERS)).length === 2, 'slots of both')
  const names = Array.from({ length: 12 }, (_, n) => `e${n}`)
  const letters = names.map((name) => ({
    name,
    key: name,
    event: 'tree.dies',
    fails: true,
    children: [{ name: `child of ${name}`, key: name }],
  }))
  const root = await grow(first, { name: 'root', children: letters })
  const all = 'SELECT id FROM heddle_dead'
  await until(async () => (await store.rows(all)).length === 12, 'the dead letters')
  const begunIn = async (): Promise<number> =>
    (await Promise.all(both.map(seenBy))).flatMap(({ begun }) => begun.filter((name) => name.startsWith('child')))
      .length
  await until(async () => (await begunIn()) === 12, 'the children of the first time')
  await cancel(first, root)
  const ids = await store.rows<{ id: string }>(`${all} WHERE replay = ''`)
  await Promise.all(ids.map(({ id }) => first.post('/replay', { id })))
  await until(async () => (await begunIn()) === 24, 'the children of the replays')
})

const OWNERS = `SELECT DISTINCT s.member FROM heddle_slot AS s JOIN heddle_group AS g ON g.id = s.grp
  WHERE g.event = 'tree.grows' AND s.member IS NOT NULL`

for (const [how, env] of [
  ['', {}],
  [' behind a pooler', { RDB_POOLER: 'transaction' }],
] as const)
  test(`a tree over two processes is taken back from one of them${how}`, async (t) => {
    const store = await onPostgres(t, false, DOMAINS)
    if (store === null) return t.skip('no PostgreSQL')
    const start = (id: string) => store.start({ REPLICA_ID: id, ...env })
    const both = [await start('a'), await start('b')] as const
    const [first, second] = both
    await until(async () => (await store.rows(OWNERS)).length === 2, 'slots of both')
    const late = [{ name: 'late' }, { name: 'late delayed', delayMs: 1500 }]
    const names = Array.from({ length: 12 }, (_, n) => `e${n}`)
    const stay = names.map((name) => ({ name, stays: true, late, ...(name < 'e5' ? { key: name } : {}) }))
    const middle = { name: 'ended', children: [...stay, { name: 'delayed', ...LONG }] }
    const root = await grow(first, { name: 'root', children: [middle] })
    await haveBegun(both, names)
    const here = (await Promise.all(both.map(seenBy))).map(({ begun }) => begun.length)
    t.diagnostic(`begun in each: ${here}`)
    assert.ok(here.every((count) => count > 0))
    const taken = await cancel(second, root)
    assert.equal(taken.waiting + taken.running, 13)
    await until(async () => {
      const reasons = (await Promise.all(both.map(seenBy))).flatMap((seen) => Object.values(seen.reasons))
      return reasons.length === 12 && reasons.every((reason) => reason === 'cancelled')
    }, 'the signals')
    await until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 0, 'the end of all rows')
    for (const { begun } of await Promise.all(both.map(seenBy)))
      for (const name of ['late', 'late delayed', 'delayed']) assert.equal(begun.includes(name), false, name)
  })

test('a filter is not taken with causedToo', async (t) => {
  const heddle = await (await onSqlite(t, DOMAINS))!.start()
  const { body } = await heddle.post('/cancel', { id: { event: 'tree.grows' } })
  assert.equal(body.code, 'EVENT_OPTIONS_INVALID')
  assert.match(body.error, /causedToo is for the id of an event/)
})
