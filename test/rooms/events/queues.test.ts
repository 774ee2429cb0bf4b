/** Queues: how many wait and for how long, which they are, paused subscribers, and deliveries that run now. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { DeliveryPage, Queue, QueuedDelivery } from '../../../src/contracts/event-bus.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { type LogStore, onPostgres, onSqlite } from '../event-store/databases.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/queued', import.meta.url))
const WORK = 'work.Jobs.work'
const ORDER = 'work.Jobs.order'

const publish = async (heddle: Heddle, event: string, data: object, options = {}): Promise<string> =>
  (await heddle.post('/publish', { event, data, options })).body.id
const gate = (heddle: Heddle, open: boolean) => heddle.post('/gate', { open })
const hasBegun = (heddle: Heddle, name: string): boolean => heddle.logs.some(({ msg }) => msg === `${name} has begun`)
const endedIn = async (heddle: Heddle): Promise<string[]> => (await heddle.json('/ended')).body.ended
const queueOf = async (heddle: Heddle, subscriber: string): Promise<Queue> => {
  const { queues } = (await heddle.json('/queues')).body as { queues: Queue[] }
  return queues.find((queue) => queue.subscriber === subscriber)!
}
/** Waits until a queue has these numbers: it is looked at once a second. */
const hasNumbers = (heddle: Heddle, subscriber: string, wanted: Partial<Queue>) => {
  let last: Queue | undefined
  return until(async () => {
    last = await queueOf(heddle, subscriber)
    return Object.entries(wanted).every(([name, value]) => last?.[name as keyof Queue] === value)
  }, JSON.stringify(wanted)).catch((error: Error) => assert.fail(`${error.message}, not ${JSON.stringify(last)}`))
}
const list = async (heddle: Heddle, wanted: object, subscriber = WORK, event = 'job.wanted'): Promise<DeliveryPage> => {
  const { body } = await heddle.post('/deliveries', { event, subscriber, ...wanted })
  assert.ok(body.answer !== undefined, JSON.stringify(body))
  return body.answer
}
const namesOf = ({ deliveries }: { deliveries: QueuedDelivery[] }) => deliveries.map(({ payload }) => payload?.name)

const STARTS: [string, (t: TestContext) => Promise<((env?: Record<string, string>) => Promise<Heddle>) | null>][] = [
  [
    'in memory',
    async (t) => () => startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { EVENT_BUS_DRIVER: 'in_process' } }),
  ],
  ['SQLite', async (t) => (await onSqlite(t, DOMAINS))!.start],
  ['PostgreSQL', async (t) => (await onPostgres(t, false, DOMAINS))?.start ?? null],
]

for (const [where, startOf] of STARTS) {
  test(`a queue counts and lists what waits, runs, comes later, is tried again and is dead (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    const failing = await publish(heddle, 'job.wanted', { name: 'failing', fails: true })
    await until(() => hasBegun(heddle, 'failing'), 'the first handler')
    await gate(heddle, true)
    await hasNumbers(heddle, WORK, { running: 0, retrying: 1 })
    await gate(heddle, false)
    const startMs = Date.now()
    const running = await publish(heddle, 'job.wanted', { name: 'running' })
    const waiting = await publish(heddle, 'job.wanted', { name: 'waiting' }, { key: 'k' })
    const later = await publish(heddle, 'job.wanted', { name: 'later' }, { delayMs: 3_600_000 })
    await until(() => hasBegun(heddle, 'running'), 'the handler')
    await hasNumbers(heddle, WORK, { running: 1, waiting: 1, later: 1, retrying: 1, dead: 0 })
    const queue = await queueOf(heddle, WORK)
    const { event, subscribed, paused, more, in_per_minute, blocked_keys, empty_in_ms } = queue
    assert.deepEqual([event, subscribed, paused, more, blocked_keys], ['job.wanted', true, null, [], 0])
    assert.ok(Math.abs(Date.parse(queue.oldest_at!) - startMs) < 60_000, queue.oldest_at!)
    assert.deepEqual([in_per_minute, queue.out_per_minute, empty_in_ms], [4, 0, null])
    await hasNumbers(heddle, 'counters', { running: 0, waiting: 0, later: 1, empty_in_ms: 0, out_per_minute: 3 })

    const waits = await list(heddle, { payloads: true })
    assert.deepEqual([namesOf(waits), waits.next], [['waiting'], null])
    const [first] = waits.deliveries
    assert.deepEqual([first!.id, first!.state, first!.key, first!.attempt], [waiting, 'waiting', 'k', 1])
    assert.deepEqual(first!.payload_keys, ['name'])
    const [runs] = (await list(heddle, { state: 'running' })).deliveries
    assert.deepEqual([runs!.id, runs!.state, runs!.attempt, runs!.payload], [running, 'running', 1, undefined])
    assert.equal(runs!.running!.lane, 0)
    assert.ok(Math.abs(Date.parse(runs!.running!.since) - startMs) < 60_000, runs!.running!.since)
    await until(async () => {
      const [shown] = (await list(heddle, { id: running })).deliveries
      return shown!.running!.note === 'half' && shown!.running!.done === 1 && shown!.running!.of === 2
    }, 'the progress')
    assert.deepEqual(namesOf(await list(heddle, { state: 'later', payloads: true })).sort(), ['failing', 'later'])
    const [retry] = (await list(heddle, { state: 'retrying' })).deliveries
    assert.deepEqual([retry!.id, retry!.attempt, retry!.error], [failing, 2, 'as wanted'])
    for (const id of [waiting, later, failing])
      assert.deepEqual(
        (await list(heddle, { id })).deliveries.map((each) => each.id),
        [id],
      )
    assert.deepEqual(namesOf(await list(heddle, { key: 'k', payloads: true })), ['waiting'])
    assert.deepEqual(namesOf(await list(heddle, { key: 'other', payloads: true })), [])
    assert.deepEqual(namesOf(await list(heddle, { search: '"waiting"', payloads: true })), ['waiting'])
    assert.deepEqual(namesOf(await list(heddle, { search: 'nothing like it', payloads: true })), [])
  })

  test(`what waits for a time runs now, once, and what is cancelled never does (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await gate(heddle, true)
    const later = await publish(heddle, 'job.wanted', { name: 'later' }, { delayMs: 3_600_000 })
    const failing = await publish(heddle, 'job.wanted', { name: 'failing', fails: true })
    const keyed = await publish(heddle, 'job.wanted', { name: 'keyed', fails: true }, { key: 'k' })
    const cancelled = await publish(heddle, 'job.wanted', { name: 'cancelled' }, { delayMs: 3_600_000 })
    await hasNumbers(heddle, WORK, { later: 2, retrying: 2, waiting: 0 })
    const run = async (id: string, subscriber?: string) => (await heddle.post('/run', { id, subscriber })).body
    assert.deepEqual(await run(later, WORK), { answer: 1 })
    assert.deepEqual(await run(failing), { answer: 1 })
    assert.deepEqual(await run(keyed), { answer: 1 })
    assert.deepEqual((await heddle.post('/cancel', { id: cancelled })).body, { waiting: 2, running: 0 })
    await until(async () => (await endedIn(heddle)).length === 3, 'the three')
    assert.deepEqual((await endedIn(heddle)).sort(), ['failing', 'keyed', 'later'])
    assert.deepEqual(await run(later, WORK), { answer: 0 })
    // The delivery of the other subscriber still waits.
    await hasNumbers(heddle, 'counters', { later: 1, waiting: 0 })
    await hasNumbers(heddle, WORK, { later: 0, retrying: 0, waiting: 0, running: 0 })
    assert.equal((await run('nonsense')).code, 'EVENT_OPTIONS_INVALID')
  })

  test(`a paused subscriber begins nothing more, and goes on in order when it is resumed (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await publish(heddle, 'job.wanted', { name: 'first' })
    await until(() => hasBegun(heddle, 'first'), 'the first handler')
    assert.deepEqual((await heddle.post('/pause', { event: 'job.wanted', subscriber: WORK })).body, { answer: 1 })
    assert.deepEqual((await heddle.post('/pause', { event: 'job.wanted', subscriber: WORK })).body, { answer: 0 })
    assert.deepEqual((await heddle.post('/pause', { event: 'job.wanted', subscriber: 'nobody' })).body, { answer: 0 })
    const names = ['second', 'third', 'fourth']
    for (const name of names) await publish(heddle, 'job.wanted', { name })
    await gate(heddle, true)
    await hasNumbers(heddle, WORK, { running: 0, waiting: 3 })
    await hasNumbers(heddle, 'counters', { waiting: 0, paused: null })
    assert.notEqual((await queueOf(heddle, WORK)).paused, null)
    await pause(300)
    assert.deepEqual(await endedIn(heddle), ['first'])
    assert.deepEqual(namesOf(await list(heddle, { payloads: true })), names)
    assert.deepEqual((await heddle.post('/resume', { event: 'job.wanted' })).body, { answer: 1 })
    await until(async () => (await endedIn(heddle)).length === 4, 'the others')
    assert.deepEqual(await endedIn(heddle), ['first', ...names])
    assert.equal((await queueOf(heddle, WORK)).paused, null)
  })

  test(`dead letters come with payloads, and a replay is shown before it is done (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await publish(heddle, 'job.ordered', { name: 'a', fails: true }, { key: 'k' })
    await publish(heddle, 'job.ordered', { name: 'b' }, { key: 'k' })
    await publish(heddle, 'job.ordered', { name: 'c', fails: true })
    await hasNumbers(heddle, ORDER, { dead: 2, blocked_keys: 1, waiting: 1 })
    assert.deepEqual(namesOf(await list(heddle, { state: 'blocked', payloads: true }, ORDER, 'job.ordered')), ['b'])
    const { answer } = (await heddle.post('/letters', { payloads: true })).body
    assert.deepEqual(
      answer.map(({ payload }: { payload: unknown }) => payload),
      [
        { name: 'a', fails: true },
        { name: 'c', fails: true },
      ],
    )
    assert.equal((await heddle.post('/letters', {})).body.answer[0].payload, undefined)
    const [preview, ...rest] = (await heddle.post('/preview', { event: 'job.ordered' })).body.answer
    const { oldest, newest, ...shown } = preview
    assert.deepEqual(
      [rest, shown],
      [[], { event: 'job.ordered', subscriber: 'work.Jobs', letters: 2, parked: 1, subscribed: true }],
    )
    assert.ok(oldest <= newest)
    assert.deepEqual((await heddle.post('/preview', { limit: 1 })).body.answer[0].letters, 1)
    await hasNumbers(heddle, ORDER, { dead: 2 })
  })
}

for (const [where, storeOf] of [
  ['SQLite', (t: TestContext) => onSqlite(t, DOMAINS)],
  ['PostgreSQL', (t: TestContext) => onPostgres(t, false, DOMAINS)],
] as const) {
  test(`a pause outlives the process, its death included (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const first = await store.start()
    await heddlePause(first)
    await publish(first, 'job.wanted', { name: 'one' })
    await first.stop('SIGKILL')
    const second = await store.start()
    await gate(second, true)
    await publish(second, 'job.wanted', { name: 'two' })
    await hasNumbers(second, WORK, { waiting: 2, running: 0 })
    await pause(300)
    assert.deepEqual(await endedIn(second), [])
    await second.post('/resume', { event: 'job.wanted', subscriber: WORK })
    await until(async () => (await endedIn(second)).length === 2, 'both')
    assert.deepEqual(await endedIn(second), ['one', 'two'])
  })

  test(`a long queue is read in pages, each once, and counted up to a bound (${where})`, async (t) => {
    const store = await storeOf(t)
    if (store === null) return t.skip('no such server')
    const heddle = await store.start()
    await heddlePause(heddle)
    for (let n = 0; n < 12; n++) await heddle.post('/publish-many', { count: 1000 })
    await hasNumbers(heddle, WORK, { waiting: 10_000, waiting_estimate: 12_000 })
    assert.deepEqual((await queueOf(heddle, WORK)).more, ['waiting'])
    const seen = new Set<string>()
    let after: string | undefined
    let pages = 0
    do {
      const page: DeliveryPage = await list(heddle, { limit: 500, ...(after === undefined ? {} : { after }) })
      for (const { id } of page.deliveries) seen.add(id)
      after = page.next ?? undefined
      pages++
    } while (after !== undefined)
    assert.deepEqual([seen.size, pages], [12_000, 24])
    // A search looks at 5,000 at a time, and says where to go on.
    const found: unknown[] = []
    do {
      const page: DeliveryPage = await list(heddle, {
        search: '"job999"',
        payloads: true,
        limit: 5,
        ...(after === undefined ? {} : { after }),
      })
      found.push(...namesOf(page))
      after = page.next ?? undefined
    } while (after !== undefined)
    assert.deepEqual(found, Array(12).fill('job999'))
  })
}

async function heddlePause(heddle: Heddle): Promise<void> {
  assert.deepEqual((await heddle.post('/pause', { event: 'job.wanted', subscriber: WORK })).body, { answer: 1 })
}

/** Two processes on one PostgreSQL. */
async function twoOn(store: LogStore, env: Record<string, string> = {}): Promise<[Heddle, Heddle]> {
  const both = [await store.start({ REPLICA_ID: 'a', ...env }), await store.start({ REPLICA_ID: 'b', ...env })]
  await until(
    async () => (await store.rows('SELECT DISTINCT member FROM heddle_slot WHERE member IS NOT NULL')).length === 2,
    'slots of both',
  )
  return both as [Heddle, Heddle]
}

test('two processes count together, know what runs in the other one, and pause and run for each other', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no PostgreSQL')
  const [first, second] = await twoOn(store)
  const names = Array.from({ length: 40 }, (_, n) => `e${n}`)
  for (const name of names) await publish(first, 'job.wanted', { name })
  const begun = (heddle: Heddle): number => names.filter((name) => hasBegun(heddle, name)).length
  await until(() => begun(first) + begun(second) === 2, 'a handler in each process')
  for (const heddle of [first, second]) {
    await hasNumbers(heddle, WORK, { running: 2, waiting: 38, in_per_minute: 40 })
    await hasNumbers(heddle, 'counters', { running: 0, waiting: 0, out_per_minute: 40 })
    const { deliveries } = await list(heddle, { state: 'running' })
    assert.deepEqual(deliveries.map(({ running }) => [running!.replica, running!.lane]).sort(), [
      ['a', 0],
      ['b', 0],
    ])
    assert.equal((await list(heddle, { limit: 500 })).deliveries.length, 38)
  }
  await heddlePause(second)
  await until(async () => (await queueOf(first, WORK)).paused !== null, 'the pause in the other process')
  for (const heddle of [first, second]) await gate(heddle, true)
  await until(async () => (await endedIn(first)).length + (await endedIn(second)).length === 2, 'both')
  await pause(1500)
  assert.equal(begun(first) + begun(second), 2)
  await hasNumbers(first, WORK, { running: 0, waiting: 38 })
  assert.deepEqual((await first.post('/resume', { event: 'job.wanted' })).body, { answer: 1 })
  await until(async () => (await endedIn(first)).length + (await endedIn(second)).length === 40, 'all')

  // Whatever process has the slot of the key has its retry in memory.
  const keyed = await Promise.all(
    ['k1', 'k2', 'k3', 'k4', 'k5', 'k6'].map((key) =>
      publish(first, 'job.wanted', { name: key, fails: true }, { key }),
    ),
  )
  await hasNumbers(first, WORK, { retrying: 6, running: 0, waiting: 0 })
  for (const id of keyed) assert.deepEqual((await first.post('/run', { id })).body, { answer: 1 })
  await until(async () => (await endedIn(first)).length + (await endedIn(second)).length === 46, 'the retries')
})

test('behind a pooler a pause in one process holds the other one within a few seconds', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no PostgreSQL')
  // Nobody listens.
  const [first, second] = await twoOn(store, { RDB_POOLER: 'transaction' })
  await heddlePause(first)
  for (const heddle of [first, second]) await hasNumbers(heddle, 'counters', { paused: null })
  await until(async () => (await queueOf(second, WORK)).paused !== null, 'the pause in the other process')
  for (let n = 0; n < 20; n++) await publish(second, 'job.wanted', { name: `e${n}` })
  await hasNumbers(second, WORK, { waiting: 20, running: 0 })
  for (const heddle of [first, second]) await gate(heddle, true)
  await second.post('/resume', { event: 'job.wanted' })
  await until(async () => (await endedIn(first)).length + (await endedIn(second)).length === 20, 'all')
  assert.ok((await endedIn(first)).length > 0 && (await endedIn(second)).length > 0)
})

test('over Redis Streams a queue counts what the stream has, and a pause holds what is read', async (t) => {
  const redis = await redisServer(t, { own: true })
  if (redis === null) return t.skip('no Redis')
  const heddle = await startHeddle(t, {
    domains: [DOMAINS],
    lanes: 1,
    env: { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' },
  })
  await publish(heddle, 'job.wanted', { name: 'first' })
  await until(() => hasBegun(heddle, 'first'), 'the first handler')
  await heddlePause(heddle)
  for (let n = 0; n < 300; n++) await publish(heddle, 'job.wanted', { name: `e${n}` })
  // 64 are in hand, the rest is in the stream.
  await hasNumbers(heddle, WORK, { running: 1, waiting: 300 })
  await gate(heddle, true)
  await hasNumbers(heddle, WORK, { running: 0, waiting: 300 })
  const { deliveries } = await list(heddle, { payloads: true, limit: 10 })
  assert.deepEqual(
    deliveries.map(({ payload }) => payload!.name),
    Array.from({ length: 10 }, (_, n) => `e${n}`),
  )
  await pause(300)
  assert.deepEqual(await endedIn(heddle), ['first'])
  await heddle.post('/resume', { event: 'job.wanted' })
  await until(async () => (await endedIn(heddle)).length === 301, 'all')
})
