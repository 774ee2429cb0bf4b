/** How often handlers begin, over all processes; and events that their handlers put off. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { onPostgres, onSqlite } from '../event-store/databases.ts'

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

for (const [where, startOf] of STORES) {
  test(`five a second are five in any second, and none is lost (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await publish(heddle, 'mail.wanted', namesOf('m', 18))
    await until(async () => (await begunIn(heddle)).length === 18, 'all of them')
    const begun = await begunIn(heddle)
    // Handlers begin a little later than they are let. What any second has is held in unit/events/rate-window.
    assert.equal(most(begun, 500), 5)
    assert.deepEqual(
      begun.map(({ name }) => name),
      namesOf('m', 18),
    )
    const tookMs = begun.at(-1)!.at - begun[0]!.at
    assert.ok(tookMs >= 2500, `${tookMs} ms`)
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
  assert.equal(most(mails, 500), 5)
  assert.ok((await begunIn(first)).some(isMail) && (await begunIn(second)).some(isMail), 'both take part')
  const tookMs = mails.at(-1)!.at - mails[0]!.at
  t.diagnostic(`50 in ${tookMs} ms`)
  const calls = begun.filter(({ name }) => name.startsWith('c'))
  assert.ok(
    most(
      begun.filter((each) => !isMail(each)),
      970,
    ) <= 10,
  )
  assert.ok(most(calls, 1500) <= 8)
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
  const broadcast = { limit: { max: 1, perMs: 10 }, broadcast: true }
  assert.deepEqual((await heddle.post('/subscribe', { options: broadcast })).body, { code: 'EVENT_OPTIONS_INVALID' })
  for (const ms of [0, -1, 1e12, 'soon', null])
    assert.deepEqual((await heddle.post('/retry-later', { ms })).body, { code: 'EVENT_OPTIONS_INVALID' })
})
