/** How often handlers begin, over all processes; and events that their handlers put off. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { onPostgres, onSqlite } from '../event-store/databases.ts'

/** Events that wait. */
const COUNT = 6000

const DOMAINS = fileURLToPath(new URL('../../fixtures/limits', import.meta.url))

interface Begun {
  name: string
  attempt: number
  at: number
}

const namesOf = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${prefix}${n}`)
const publish = (heddle: Heddle, event: string, names: readonly string[], data: object = {}, options: object = {}) =>
  heddle.post('/publish', { event, names, data, options })
const begunIn = async (...processes: Heddle[]): Promise<Begun[]> =>
  (await Promise.all(processes.map(async (heddle) => (await heddle.json('/begun')).body.begun as Begun[])))
    .flat()
    .sort((a, b) => a.at - b.at)

/** @returns the most that began within some time */
function most(begun: readonly Begun[], withinMs: number): number {
  return Math.max(...begun.map(({ at }) => begun.filter((other) => other.at >= at && other.at < at + withinMs).length))
}

const STORES: [string, (t: TestContext) => Promise<(() => Promise<Heddle>) | null>][] = [
  [
    'in_process',
    async (t) => () => startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { EVENT_BUS_DRIVER: 'in_process' } }),
  ],
  ['SQLite', async (t) => (await onSqlite(t, DOMAINS))!.start],
  ['PostgreSQL', async (t) => (await onPostgres(t, false, DOMAINS))?.start ?? null],
]

/** A thread may be held up between the look at the limit and that at its clock, milliseconds. */
const ANY_SECOND = 970

for (const [where, startOf] of STORES) {
  test(`five a second are five in any second, and none is lost (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await publish(heddle, 'mail.wanted', namesOf('m', 18))
    await until(async () => (await begunIn(heddle)).length === 18, 'all of them')
    const begun = await begunIn(heddle)
    assert.equal(most(begun, ANY_SECOND), 5)
    assert.deepEqual(
      begun.map(({ name }) => name),
      namesOf('m', 18),
    )
    const tookMs = begun.at(-1)!.at - begun[0]!.at
    assert.ok(tookMs >= 2500, `${tookMs} ms`)
  })

  test(`a limit of each customer holds up no other customer (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await publish(heddle, 'hook.wanted', namesOf('a', 6), { customer: 'a' })
    await publish(heddle, 'hook.wanted', namesOf('b', 3), { customer: 'b' })
    await publish(heddle, 'hook.wanted', ['c0'], {})
    await until(async () => (await begunIn(heddle)).length === 10, 'all of them')
    const begun = await begunIn(heddle)
    const of = (customer: string): Begun[] => begun.filter(({ name }) => name.startsWith(customer))
    // Handlers begin a little later than they may.
    const tookMs = of('a').at(-1)!.at - of('a')[0]!.at
    assert.ok(tookMs > 1500, `two a second: six took ${tookMs} ms`)
    for (const customer of ['b', 'c'])
      assert.ok(of(customer)[0]!.at < of('a')[4]!.at, `${customer} does not wait for a`)
    assert.deepEqual(
      of('a')
        .map(({ name }) => name)
        .sort(),
      namesOf('a', 6),
    )
  })

  test(`who has many waiting does not delay who has one (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await publish(heddle, 'turn.wanted', namesOf('a', 100), { customer: 'a', ms: 20 })
    await until(async () => (await begunIn(heddle)).length > 2, 'the first ones')
    await publish(heddle, 'turn.wanted', namesOf('b', 3), { customer: 'b', ms: 20 })
    await until(
      async () => (await begunIn(heddle)).filter(({ name }) => name.startsWith('b')).length === 3,
      'the others',
    )
    const names = (await begunIn(heddle)).map(({ name }) => name)
    assert.ok(names.indexOf('b2') - names.indexOf('b0') <= 4, names.join(' '))
    assert.ok(names.indexOf('b2') < 60, names.join(' '))
  })

  test(`what tells no customer loses nothing (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await publish(heddle, 'odd.wanted', ['t0'], { customer: 'throws' })
    await publish(heddle, 'odd.wanted', ['o0'], { customer: { id: 1 } })
    await publish(heddle, 'odd.wanted', ['l0'], { customer: 'x'.repeat(10_000) })
    await publish(heddle, 'odd.wanted', ['n0'], { customer: 7 })
    await until(async () => (await begunIn(heddle)).length === 4, 'all of them')
    const told = heddle.logs.filter(({ msg }) => msg.includes('could not tell whose odd.wanted is'))
    assert.equal(told.length, 1)
    assert.match(told[0]!.msg, /^work\.Limits\.odd could not tell whose odd\.wanted is.*no customer/)
  })

  test(`an event that is put off counts no attempt, and with all the subscriber waits (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await publish(heddle, 'later.wanted', ['a'], { times: 3, ms: 100 })
    await until(async () => (await begunIn(heddle)).length === 4, 'the fourth time')
    const begun = await begunIn(heddle)
    assert.deepEqual(
      begun.map(({ attempt }) => attempt),
      [1, 1, 1, 1],
    )
    for (const n of [1, 2, 3]) assert.ok(begun[n]!.at - begun[n - 1]!.at >= 95)
    await publish(heddle, 'later.wanted', ['b'], { times: 1, ms: 1500, all: true })
    await until(async () => (await begunIn(heddle)).length === 5, 'the one that stops all')
    await publish(heddle, 'later.wanted', ['c'], { times: 0 })
    await until(async () => (await begunIn(heddle)).length === 7, 'both')
    const [stopped, ...others] = (await begunIn(heddle)).slice(4)
    for (const { at } of others) assert.ok(at - stopped!.at >= 1490, `after ${at - stopped!.at} ms`)
    assert.equal((await heddle.json('/begun')).body.dead, 0)
  })
}

test('over two processes five a second are five, and two subscribers share a limit', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no PostgreSQL')
  const [first, second] = [await store.start({ REPLICA_ID: 'a' }), await store.start({ REPLICA_ID: 'b' })] as [
    Heddle,
    Heddle,
  ]
  await until(
    async () => (await store.rows('SELECT DISTINCT member FROM heddle_slot WHERE member IS NOT NULL')).length === 2,
    'slots of both',
  )
  const isMail = ({ name }: Begun): boolean => name.startsWith('m')
  await publish(first, 'mail.wanted', namesOf('m', 50))
  await publish(first, 'call.wanted', namesOf('c', 16))
  await publish(second, 'text.wanted', namesOf('t', 30))
  await until(async () => (await begunIn(first, second)).length === 96, 'all of them', 60_000)
  const begun = await begunIn(first, second)
  const mails = begun.filter(isMail)
  assert.equal(most(mails, ANY_SECOND), 5)
  assert.ok((await begunIn(first)).some(isMail) && (await begunIn(second)).some(isMail), 'both take part')
  const tookMs = mails.at(-1)!.at - mails[0]!.at
  t.diagnostic(`50 in ${tookMs} ms`)
  const calls = begun.filter(({ name }) => name.startsWith('c'))
  assert.ok(
    most(
      begun.filter((each) => !isMail(each)),
      ANY_SECOND,
    ) <= 10,
  )
  assert.ok(most(calls, 1500) <= 8)
})

interface Run {
  name: string
  customer: string
  begun: number
  ended: number
}

const runsIn = async (...processes: Heddle[]): Promise<Run[]> =>
  (await Promise.all(processes.map(async (heddle) => (await heddle.json('/runs')).body.runs as Run[]))).flat()

/** @returns the most that ran at the same time */
const atOnce = (runs: readonly Run[]): number =>
  Math.max(...runs.map(({ begun }) => runs.filter((other) => other.begun <= begun && begun < other.ended).length))

for (const [where, startOf] of STORES)
  test(`at most as many handlers run as may, and with by of each customer (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await publish(heddle, 'two.wanted', namesOf('t', 8), { ms: 50 })
    for (const customer of ['a', 'b']) await publish(heddle, 'each.wanted', namesOf(customer, 4), { customer, ms: 50 })
    await until(async () => (await runsIn(heddle)).length === 16, 'all of them')
    const runs = await runsIn(heddle)
    assert.equal(atOnce(runs.filter(({ name }) => name.startsWith('t'))), 2)
    for (const customer of ['a', 'b']) assert.equal(atOnce(runs.filter((run) => run.customer === customer)), 1)
  })

test('over two processes at most as many run as may, each gets its part, and one that dies gives its own back', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no such server')
  const [one, two] = [await store.start(), await store.start()]
  await publish(one, 'two.wanted', namesOf('t', 40), { ms: 100 })
  await publish(two, 'each.wanted', namesOf('a', 20), { customer: 'a', ms: 100 })
  await until(async () => (await runsIn(one, two)).length === 60, 'all of them', 60_000)
  const runs = await runsIn(one, two)
  assert.ok(atOnce(runs.filter(({ name }) => name.startsWith('t'))) <= 2)
  assert.equal(atOnce(runs.filter(({ name }) => name.startsWith('a'))), 1)
  for (const heddle of [one, two])
    assert.ok((await runsIn(heddle)).filter(({ name }) => name.startsWith('t')).length > 0, 'each has some')
  // Both permits are in use when the process dies.
  await publish(one, 'two.wanted', namesOf('long', 6), { ms: 2000 })
  await until(async () => (await store.rows('SELECT 1 FROM heddle_permit WHERE held > 0')).length > 0, 'some run')
  await two.stop('SIGKILL')
  await until(
    async () => (await runsIn(one)).filter(({ name }) => name.startsWith('long')).length >= 4,
    'the rest',
    60_000,
  )
  await until(async () => (await store.rows('SELECT 1 FROM heddle_delivery')).length === 0, 'all are handled', 60_000)
})

test('limits that say nothing are refused', async (t) => {
  const heddle = await (await onSqlite(t, DOMAINS))!.start()
  const limits = [
    0,
    {},
    { max: 0, perMs: 1000 },
    { max: 1.5, perMs: 1000 },
    { max: 5 },
    { max: 5, perMs: 1 },
    { max: 5, perMs: 1000, name: 'a b' },
    [],
    Array(9).fill({ max: 1, perMs: 10 }),
  ]
  for (const limit of limits)
    assert.deepEqual((await heddle.post('/subscribe', { options: { limit } })).body, { code: 'EVENT_OPTIONS_INVALID' })
  for (const concurrency of [0, {}, { max: 0 }, { max: 1.5 }, { max: 2, by: 'tenant' }, [], null, '2'])
    assert.deepEqual(
      (await heddle.post('/subscribe', { options: { concurrency } })).body,
      { code: 'EVENT_OPTIONS_INVALID' },
      JSON.stringify(concurrency),
    )
  for (const options of [
    { fair: 'tenant' },
    { limit: { max: 1, perMs: 10, by: {} } },
    { limit: { max: 1, perMs: 10 }, broadcast: true },
    { concurrency: { max: 1 }, broadcast: true },
  ])
    assert.deepEqual((await heddle.post('/subscribe', { options })).body, { code: 'EVENT_OPTIONS_INVALID' })
  for (const priority of ['urgent', 1, null, true])
    assert.deepEqual((await heddle.post('/publish-with', { options: { priority } })).body, {
      code: 'EVENT_OPTIONS_INVALID',
    })
  for (const ms of [0, -1, 1e12, 'soon', null])
    assert.deepEqual((await heddle.post('/retry-later', { ms })).body, { code: 'EVENT_OPTIONS_INVALID' })
})

for (const [where, storeOf] of [
  ['SQLite', (t: TestContext) => onSqlite(t, DOMAINS)],
  ['PostgreSQL', (t: TestContext) => onPostgres(t, false, DOMAINS)],
] as const) {
  test(`behind the many of some, the event of another is next, and none is lost (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    const customers = ['a', 'b', 'c']
    await heddle.post('/backlog', { event: 'turn.wanted', count: COUNT, customers, data: { ms: 0 } })
    const behind: number[] = []
    for (const n of [1, 2, 3, 4, 5]) {
      const before = (await heddle.json('/count')).body.count
      await publish(heddle, 'turn.wanted', [`new${n}`], { customer: `new${n}`, ms: 0 })
      await until(async () => (await heddle.json(`/begun-of?prefix=new${n}`)).body.places.length === 1, 'the other')
      behind.push((await heddle.json(`/begun-of?prefix=new${n}`)).body.places[0] - before)
    }
    t.diagnostic(`after ${behind.join(', ')} others, of ${COUNT}`)
    assert.ok(behind.sort((a, b) => a - b)[2]! < COUNT / 4, `${behind.join(', ')} others`)
    await until(async () => (await heddle.json('/count')).body.count === COUNT + 5, 'all of them', 120_000)
    assert.deepEqual(await store.rows('SELECT seq FROM heddle_delivery LIMIT 1'), [])
  })

  test(`those of one key keep their order, whosever they are, and each is handled (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    const customers = ['a', 'b', 'c', 'd', 'e']
    // Each key has events of all customers, and of all priorities.
    const priorities = ['high', 'normal', 'low']
    await heddle.post('/backlog', { event: 'odd-turn.wanted', count: 3000, customers, priorities, keys: 40, data: {} })
    await until(async () => (await heddle.json('/count')).body.count === 3000, 'all of them', 60_000)
    const last = new Map<number, number>()
    for (const { name } of await begunIn(heddle)) {
      const n = Number(name.slice(1))
      assert.ok((last.get(n % 40) ?? -1) < n, `${n} behind ${last.get(n % 40)}`)
      last.set(n % 40, n)
    }
  })

  test(`who is urgent goes before the many that are not, and those do not starve (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    await heddle.post('/backlog', {
      event: 'plain.wanted',
      count: 4000,
      customers: ['x'],
      priorities: ['low'],
      data: {},
    })
    const before = (await heddle.json('/count')).body.count
    await heddle.post('/backlog', {
      event: 'plain.wanted',
      count: 1000,
      customers: ['y'],
      priorities: ['high'],
      data: {},
    })
    await until(async () => (await heddle.json('/count')).body.count === 5000, 'all of them', 60_000)
    const { places } = (await heddle.json('/begun-of?prefix=high')).body
    t.diagnostic(`the last one of 1000 after ${places.at(-1) - before} of ${5000 - before}`)
    assert.ok(places.at(-1) < 4000, `the last one is number ${places.at(-1)}`)
    const low = (await heddle.json('/begun-of?prefix=low')).body.places.filter(
      (at: number) => at > places[0] && at < places.at(-1),
    )
    assert.ok(low.length >= 1000 / 16, `${low.length} of the others beside the urgent ones`)
  })
}
