/** Events that are replaced, limited, taken back or followed while something else happens to them. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { type LogStore, onPostgres, onSqlite } from '../event-store/databases.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/contended', import.meta.url))

interface Begun {
  name: string
  at: number
}

const publish = async (heddle: Heddle, event: string, name: string, options = {}, data = {}): Promise<string> =>
  (await heddle.post('/publish', { event, data: { name, ...data }, options })).body.id
const begunIn = async (heddle: Heddle): Promise<Begun[]> => (await heddle.json('/begun')).body.begun
const namesIn = async (heddle: Heddle): Promise<string[]> => (await begunIn(heddle)).map(({ name }) => name)
const hasBegun = (heddle: Heddle, name: string): Promise<unknown> =>
  until(async () => (await namesIn(heddle)).includes(name), `the handler of ${name}`, 5000)
const gate = (heddle: Heddle, open: boolean) => heddle.post('/gate', { open })
const cancel = async (heddle: Heddle, what: unknown) => (await heddle.post('/cancel', { what })).body

const LAST = { unique: 'u', replace: true }
const ON_FILE = (t: TestContext) => onSqlite(t, DOMAINS)
const ON_SERVER = (t: TestContext) => onPostgres(t, false, DOMAINS)

function holds(name: string, make: (t: TestContext) => Promise<LogStore | null>, run: (store: LogStore) => unknown) {
  test(name, async (t) => {
    const store = await make(t)
    if (store === null) return t.skip('no such server')
    await run(store)
  })
}

holds('what replaced one that would have expired is handled', ON_FILE, async (store) => {
  const heddle = await store.start()
  await gate(heddle, false)
  await publish(heddle, 'gated', 'holder')
  await publish(heddle, 'gated', 'old', { ...LAST, ttlMs: 600 })
  await publish(heddle, 'gated', 'new', { ...LAST, ttlMs: 60_000 })
  await sleep(1000)
  await gate(heddle, true)
  await hasBegun(heddle, 'new')
})

holds('one that has expired does not stand in the way of the next', ON_FILE, async (store) => {
  const heddle = await store.start()
  await gate(heddle, false)
  await publish(heddle, 'gated', 'holder')
  await publish(heddle, 'gated', 'expired', { unique: 'u', ttlMs: 200 })
  await sleep(500)
  await publish(heddle, 'gated', 'next', { unique: 'u' })
  await gate(heddle, true)
  await hasBegun(heddle, 'next')
})

holds('what is published while the process boots replaces what waits', ON_FILE, async (store) => {
  await (await store.start({ HOLD: 'old' })).stop()
  assert.equal((await store.rows('SELECT seq FROM heddle_delivery')).length, 1)
  const heddle = await store.start({ HOLD: 'new' })
  await hasBegun(heddle, 'new')
})

holds('what waits for its limit is replaced', ON_FILE, async (store) => {
  const heddle = await store.start()
  for (const name of ['first', 'old', 'new']) {
    await publish(heddle, 'limited', name, LAST)
    await sleep(200)
  }
  await hasBegun(heddle, 'new')
  assert.deepEqual(await namesIn(heddle), ['first', 'new'])
})

holds('a limit is used up although one begins after the other', ON_FILE, async (store) => {
  const heddle = await store.start()
  for (let n = 0; n < 5; n++) await publish(heddle, 'slow', `n${n}`)
  await hasBegun(heddle, 'n4')
})

holds('what is put off is taken back by its name', ON_FILE, async (store) => {
  const heddle = await store.start()
  await publish(heddle, 'later', 'a', { unique: 'u', while: 'waiting' })
  await hasBegun(heddle, 'a')
  await sleep(200)
  assert.deepEqual(await cancel(heddle, { event: 'later', unique: 'u' }), { waiting: 1, running: 0 })
})

holds('one that is replaced as it comes due waits for its new time', ON_SERVER, async (store) => {
  const heddle = await store.start()
  await publish(heddle, 'plain', 'old', { ...LAST, delayMs: 1000 })
  await heddle.post('/transaction', { event: 'plain', name: 'new', options: { ...LAST, delayMs: 60_000 }, ms: 2500 })
  await sleep(1000)
  assert.deepEqual(await namesIn(heddle), [])
})

holds('a transaction that has published with unique holds up no other publisher', ON_SERVER, async (store) => {
  const heddle = await store.start()
  const options = { unique: 'u', delayMs: 600_000 }
  const open = heddle.post('/transaction', { event: 'plain', name: 'a', options, ms: 5000 })
  await sleep(500)
  const same = publish(heddle, 'plain', 'b', options)
  await sleep(100)
  const at = Date.now()
  await publish(heddle, 'plain', 'other')
  const tookMs = Date.now() - at
  await Promise.all([open, same])
  assert.ok(tookMs < 1500, `${tookMs} ms`)
})

holds('what a transaction commits after a cancel is not taken back', ON_SERVER, async (store) => {
  const heddle = await store.start()
  await publish(heddle, 'plain', 'waits', { delayMs: 600_000 })
  const open = heddle.post('/transaction', { event: 'plain', name: 'kept', options: { unique: 'u' }, ms: 1500 })
  await sleep(500)
  assert.deepEqual(await cancel(heddle, { event: 'plain' }), { waiting: 1, running: 0 })
  await open
  await hasBegun(heddle, 'kept')
})

holds('an event that another process has done after a cancel of its name is done', ON_SERVER, async (store) => {
  const first = await store.start({ REPLICA_ID: 'a' })
  await store.start({ REPLICA_ID: 'b' })
  await sleep(2500)
  await publish(first, 'plain', 'waits', { delayMs: 600_000 })
  await cancel(first, { event: 'plain' })
  const ids: string[] = []
  for (let n = 0; n < 12; n++) ids.push(await publish(first, 'plain', `n${n}`, {}, { ms: 2000 }))
  const ends = await Promise.all(
    ids.map(async (id) => (await first.post('/follow', { id, ms: 8000 })).body.items.at(-1).state),
  )
  assert.deepEqual([...new Set(ends)], ['done'])
})

holds(
  'chunks and a result outlast a database that is away',
  (t) => onPostgres(t, true, DOMAINS),
  async (store) => {
    const heddle = await store.start()
    const id = await publish(heddle, 'emitting', 'a')
    await sleep(1000)
    await store.server!.stop()
    await sleep(2000)
    await store.server!.start()
    await sleep(4000)
    const { items } = (await heddle.post('/follow', { id, ms: 5000 })).body
    const told = items.reduce(
      (sum: number, { chunk, missed = 0 }: { chunk?: number; missed?: number }) =>
        sum + (chunk === undefined ? 0 : 1 + missed),
      0,
    )
    assert.equal(told, 30)
  },
)
