/** Events that a subscriber has one at a time: the one that is there stays, or gets the payload and the time of the next. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { onPostgres, onSqlite } from '../event-store/databases.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/uniques', import.meta.url))

interface Handled {
  id: string
  name: string
}

const publish = async (heddle: Heddle, name: string, options: object): Promise<string> => {
  const { body } = await heddle.post('/publish', { name, options })
  assert.equal(body.code, undefined)
  return body.id
}
const handledBy = async (heddle: Heddle): Promise<Handled[]> => (await heddle.json('/handled')).body.handled
const namesOf = async (heddle: Heddle): Promise<string[]> => (await handledBy(heddle)).map(({ name }) => name)
const hasBegun = (heddle: Heddle, name: string): boolean => heddle.logs.some(({ msg }) => msg === `${name} has begun`)
const gate = (heddle: Heddle, open: boolean) => heddle.post('/gate', { open })
/** A handler is at work, and what comes waits behind it. */
async function hold(heddle: Heddle, name = 'holder'): Promise<void> {
  await gate(heddle, false)
  await publish(heddle, name, {})
  await until(() => hasBegun(heddle, name), 'the handler that holds up the others')
}

const STORES: [string, (t: TestContext) => Promise<(() => Promise<Heddle>) | null>][] = [
  // The events without `unique` are in memory there.
  [
    'in_process',
    async (t) => () => startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { EVENT_BUS_DRIVER: 'in_process' } }),
  ],
  ['SQLite', async (t) => (await onSqlite(t, DOMAINS))!.start],
  ['PostgreSQL', async (t) => (await onPostgres(t, false, DOMAINS))?.start ?? null],
]

for (const [where, startOf] of STORES) {
  test(`of sixteen published at once, one is there, and all get its id (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await hold(heddle)
    const { ids } = (await heddle.post('/many', { name: 'm', count: 16, options: { unique: 'u' } })).body
    assert.equal(new Set(ids).size, 1)
    assert.notEqual(await publish(heddle, 'other', { unique: 'v' }), ids[0])
    await gate(heddle, true)
    await until(async () => (await handledBy(heddle)).length === 3, 'all handlers')
    // On a server, sixteen at once come in any order.
    assert.match((await namesOf(heddle)).join(), /^holder,m\d+,other$/)
    assert.equal((await handledBy(heddle))[1]!.id, ids[0])
    assert.notEqual(await publish(heddle, 'again', { unique: 'u' }), ids[0])
    await until(async () => (await namesOf(heddle)).includes('again'), 'one after the end of the first')
  })

  test(`one is there while it runs, or only while it waits (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await gate(heddle, false)
    const first = await publish(heddle, 'first', { unique: 'u' })
    await until(() => hasBegun(heddle, 'first'), 'the first handler')
    assert.equal(await publish(heddle, 'no', { unique: 'u' }), first)
    const waits = await publish(heddle, 'waits', { unique: 'w', while: 'waiting' })
    assert.equal(await publish(heddle, 'no', { unique: 'w', while: 'waiting' }), waits)
    await gate(heddle, true)
    await until(async () => (await namesOf(heddle)).includes('waits'), 'the second handler')
    await gate(heddle, false)
    const runs = await publish(heddle, 'runs', { unique: 'w', while: 'waiting' })
    await until(() => hasBegun(heddle, 'runs'), 'the third handler')
    const next = await publish(heddle, 'next', { unique: 'w', while: 'waiting' })
    assert.notEqual(next, runs)
    assert.equal(await publish(heddle, 'no', { unique: 'w', while: 'waiting' }), next)
    await gate(heddle, true)
    await until(async () => (await namesOf(heddle)).includes('next'), 'the last handler')
    assert.deepEqual(await namesOf(heddle), ['first', 'waits', 'runs', 'next'])
  })

  test(`what waits gets the last payload and the last time, and keeps its id (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    const last = { unique: 'u', replace: true }
    await hold(heddle)
    // In the hub, behind the first.
    const id = await publish(heddle, 'a', last)
    assert.equal(await publish(heddle, 'b', last), id)
    await publish(heddle, 'behind', {})
    await gate(heddle, true)
    await until(async () => (await namesOf(heddle)).includes('behind'), 'all handlers')
    assert.deepEqual(await namesOf(heddle), ['holder', 'b', 'behind'])
    // Later, still later, then at once.
    const later = await publish(heddle, 'c', { ...last, delayMs: 400 })
    assert.equal(await publish(heddle, 'd', { ...last, delayMs: 600_000 }), later)
    await publish(heddle, 'between', { delayMs: 700 })
    await until(async () => (await namesOf(heddle)).includes('between'), 'the time of the first')
    assert.equal(await publish(heddle, 'e', last), later)
    await until(async () => (await namesOf(heddle)).includes('e'), 'the one that was moved')
    // Ready, then later.
    await hold(heddle, 'holder 2')
    const ready = await publish(heddle, 'f', last)
    assert.equal(await publish(heddle, 'g', { ...last, delayMs: 500 }), ready)
    await gate(heddle, true)
    await publish(heddle, 'before g', {})
    await until(async () => (await namesOf(heddle)).includes('g'), 'the one that was put off')
    const all = await handledBy(heddle)
    assert.deepEqual(
      all.map(({ name }) => name),
      ['holder', 'b', 'behind', 'between', 'e', 'holder 2', 'before g', 'g'],
    )
    assert.equal(all.at(-1)!.id, ready)
  })

  test(`it is taken back by its name (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await gate(heddle, false)
    await publish(heddle, 'runs', { unique: 'u', while: 'waiting' })
    await until(() => hasBegun(heddle, 'runs'), 'the handler')
    await publish(heddle, 'waits', { unique: 'u', while: 'waiting' })
    await publish(heddle, 'other', { unique: 'v' })
    const what = { event: 'work.one', unique: 'u' }
    assert.deepEqual((await heddle.post('/cancel', { what })).body, { waiting: 1, running: 1 })
    await gate(heddle, true)
    await until(async () => (await namesOf(heddle)).includes('other'), 'the other')
    assert.equal(hasBegun(heddle, 'waits'), false)
  })
}

test('options that say nothing, or two things, are refused', async (t) => {
  const store = (await onSqlite(t, DOMAINS))!
  const heddle = await store.start()
  const refused = async (options: object): Promise<void> =>
    assert.deepEqual((await heddle.post('/publish', { name: 'x', options })).body, { code: 'EVENT_OPTIONS_INVALID' })
  await refused({ unique: '' })
  await refused({ unique: 'x'.repeat(10_000) })
  await refused({ unique: '\u0001'.repeat(500) })
  await refused({ unique: 7 })
  await refused({ while: 'waiting' })
  await refused({ replace: true })
  await refused({ unique: 'u', while: 'sleeping' })
  await refused({ unique: 'u', while: 'running', replace: true })
  await publish(heddle, 'long', { unique: '€'.repeat(512), delayMs: 600_000 })
  await publish(heddle, 'a', { unique: 'u', replace: true, key: 'a', delayMs: 600_000 })
  await refused({ unique: 'u', replace: true, key: 'b' })
})

for (const [where, storeOf] of [
  ['SQLite', (t: TestContext) => onSqlite(t, DOMAINS)],
  ['PostgreSQL', (t: TestContext) => onPostgres(t, false, DOMAINS)],
] as const) {
  test(`in a transaction it is there with the commit, and not without (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    await hold(heddle)
    const options = { unique: 'u', delayMs: 600_000 }
    const none = [
      { name: 'a', options: {} },
      { name: 'b', options },
    ]
    assert.equal((await heddle.post('/transaction', { publish: none, fails: true })).status, 500)
    const [first, second, third] = (await heddle.post('/transaction', { publish: [...none, { name: 'c', options }] }))
      .body.ids
    assert.equal(second, third)
    assert.notEqual(first, second)
    // Taken back and published anew within one commit.
    const again = (
      await heddle.post('/transaction', {
        cancel: { event: 'work.one', unique: 'u' },
        publish: [{ name: 'd', options: { unique: 'u' } }],
      })
    ).body
    assert.equal(again.taken, 1)
    assert.notEqual(again.ids[0], second)
    // Moved from its time to now.
    const moved = await publish(heddle, 'e', { unique: 'm', replace: true, delayMs: 600_000 })
    const { ids } = (
      await heddle.post('/transaction', { publish: [{ name: 'f', options: { unique: 'm', replace: true } }] })
    ).body
    assert.deepEqual(ids, [moved])
    await gate(heddle, true)
    await until(async () => (await namesOf(heddle)).includes('f'), 'the one that was moved')
    assert.deepEqual(await namesOf(heddle), ['holder', 'a', 'd', 'f'])
    await until(async () => (await store.rows('SELECT seq FROM heddle_delivery')).length === 0, 'the last outcome')
  })
}

test('sixteen publishers of two processes, and a process that is killed while it runs', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no PostgreSQL')
  const [first, second] = [await store.start({ REPLICA_ID: 'a' }), await store.start({ REPLICA_ID: 'b' })] as [
    Heddle,
    Heddle,
  ]
  for (const heddle of [first, second]) await gate(heddle, false)
  const many = { name: 'm', count: 8, options: { unique: 'u' } }
  const both = await Promise.all([first, second].map((heddle) => heddle.post('/many', many)))
  const ids = both.flatMap(({ body }) => body.ids as string[])
  assert.deepEqual([ids.length, new Set(ids).size], [16, 1])
  const begun = (heddle: Heddle): boolean => heddle.logs.some(({ msg }) => /^m\d has begun$/.test(msg))
  await until(() => begun(first) || begun(second), 'the handler')
  const [holder, other] = begun(first) ? [first, second] : [second, first]
  await holder.stop('SIGKILL')
  // It is there until it has ended, wherever.
  assert.equal(await publish(other, 'no', { unique: 'u' }), ids[0])
  await gate(other, true)
  await until(async () => (await handledBy(other)).length === 1, 'the other process to handle it', 60_000)
  assert.equal((await handledBy(other))[0]!.id, ids[0])
  assert.notEqual(await publish(other, 'again', { unique: 'u' }), ids[0])
})
