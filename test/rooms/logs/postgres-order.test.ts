/** The order of a key on PostgreSQL: rows that become visible late, and processes that are killed, frozen and stopped. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { serverInsertStatement } from '../../../src/runtime/event-store/server-rows.ts'
import { benchOn } from '../../contracts/log-bench.ts'
import { POSTGRES } from '../../contracts/log-kinds.ts'
import { assertOrder, handled, isEmpty, letterOf, notesOf, numbers, orderOf, pause } from '../../contracts/log-rule.ts'
import type { LogProcess } from '../../contracts/log-store.ts'
import { seededRandom } from '../../support/random.ts'
import { rowsOfServer } from '../../support/rows.ts'
import { textsOf } from '../../support/text-array.ts'
import { until } from '../../support/until.ts'

/** A look for late rows is made once a second. */
const LOOKS_MS = 3500

async function benchOnPostgres(t: TestContext) {
  let env: Record<string, string> = {}
  const bench = benchOn({ after: (end) => t.after(end) }, async (owner, hasOwnServer) => {
    const place = await POSTGRES.place(owner, hasOwnServer)
    env = place?.env ?? {}
    return place
  })
  const store = await bench.own(t, false)
  if (store === null) return null
  const access = {
    host: env.RDB_HOST!,
    port: Number(env.RDB_PORT),
    user: env.RDB_USER!,
    password: env.RDB_PASSWORD!,
    database: env.RDB_DATABASE!,
  }
  const connect = () => rowsOfServer({ after: (end) => t.after(end) }, access)
  return { log: { ...store, patienceMs: 60_000 }, connect }
}

/** An event as another publisher stores it, whose commit is the test's. */
function insertOf(tag: string, n: number, key: string | null): string {
  const payload = JSON.stringify({ tag, n, key })
  const frame = {
    id: `evt_${String(n).padStart(12, '0')}_${tag}`,
    parentId: null,
    ancestors: '',
    event: 'work',
    emitter: 'shop',
    requestId: null,
    key,
    trace: '',
    payloadKeys: '',
    timestampMs: Date.now(),
    delayMs: 0,
    ttlMs: 0,
    unique: null,
    shares: '',
    seq: 0,
    subscriber: 0,
    attempt: 0,
    beginBy: 0,
    payload,
  }
  const { sql, params } = serverInsertStatement('groups', [frame], 0, 0)
  return params.reduceRight<string>(
    (text, value, index) =>
      text.replaceAll(`$${index + 1}`, () =>
        value === null
          ? 'NULL'
          : typeof value === 'number'
            ? String(value)
            : Buffer.isBuffer(value)
              ? `ARRAY[${textsOf(value).map(quoted).join()}]`
              : quoted(value),
      ),
    sql,
  )
}

const quoted = (value: unknown): string => (value === null ? 'NULL' : `'${String(value).replaceAll("'", "''")}'`)

test('a row that becomes visible behind those that were read is handled, with a key or without', async (t) => {
  const bench = await benchOnPostgres(t)
  if (bench === null) return t.skip('there is no such server')
  const { log, connect } = bench
  const first = await log.open('first')
  const [late, later] = [connect(), connect()]
  const begin = async (rows: typeof late, tag: string, key: string | null): Promise<void> => {
    await rows('BEGIN')
    await rows(insertOf(tag, 0, key))
  }
  // One that others pass, and one that is open while the looks go on.
  await begin(late, 'late', null)
  await begin(later, 'later', 'key of later')
  const ids = await Promise.all(
    numbers(50).map((n) => first.publish('work', { tag: 't', n }, { key: n % 2 === 0 ? `k ${n}` : 'key of later' })),
  )
  await handled(log, 't', 'work', ids)
  await late('COMMIT')
  await until(() => notesOf(log, 'late', 'work').length === 1, 'the late row')
  await pause(LOOKS_MS)
  assert.equal(notesOf(log, 'later', 'work').length, 0)
  await later('COMMIT')
  await until(() => notesOf(log, 'later', 'work').length === 1, 'the other late row')
  await pause(LOOKS_MS)
  for (const tag of ['late', 'later']) assert.equal(notesOf(log, tag, 'work', 'begin').length, 1, `${tag} once`)
  await isEmpty(log)
})

test('a late row of a blocked key waits with it, and a late row behind a slow one keeps the order of its publisher', async (t) => {
  const bench = await benchOnPostgres(t)
  if (bench === null) return t.skip('there is no such server')
  const { log, connect } = bench
  const first = await log.open('first')
  const rows = connect()
  const bad = await first.publish('parked', { tag: 't', n: 0, course: ['unrecoverable'] }, { key: 'k' })
  const letter = await letterOf(log, first, bad, 'TakeWork')
  await rows('BEGIN')
  await rows(insertOf('l', 1, 'k').replaceAll("'work'", "'parked'"))
  await first.publish('parked', { tag: 't', n: 2 }, { key: 'k' })
  await until(() => notesOf(log, 't', 'parked-too').length >= 1, 'the other subscriber')
  await rows('COMMIT')
  await pause(LOOKS_MS)
  assert.equal(notesOf(log, 'l', 'parked').length, 0, 'it waits')
  await first.remove(letter)
  await until(() => notesOf(log, 'l', 'parked').length === 1 && notesOf(log, 't', 'parked').length === 1, 'both')
})

const KEYS = 12
const ROUNDS = 9

test('no event begins before one of its key has ended, whoever is killed, frozen or stopped meanwhile', async (t) => {
  const bench = await benchOnPostgres(t)
  if (bench === null) return t.skip('there is no such server')
  const { log } = bench
  const seed = Number(process.env.ORDER_SEED ?? Date.now() % 100_000)
  t.diagnostic(`ORDER_SEED=${seed}`)
  const random = seededRandom(seed)
  const living: LogProcess[] = await Promise.all(numbers(3).map((n) => log.open(`p${n}`)))
  let opened = living.length
  const ended: string[] = []
  const ids: string[] = []
  let isOver = false
  const publish = async (key: string): Promise<void> => {
    for (let n = 0; !isOver; n++) {
      const by = living[random(living.length)]
      const course = [`wait ${random(30)}` as const]
      const id = await by?.publish('work', { tag: 't', n, course }, { key }).catch(() => null)
      if (typeof id === 'string') ids.push(id)
      await pause(10 + random(40))
    }
  }
  const clients = numbers(KEYS).map((n) => publish(`key ${n}`))
  for (const _ of numbers(ROUNDS)) {
    await pause(1500 + random(2000))
    const [process] = living.splice(random(living.length), 1)
    if (process === undefined) continue
    const what = random(3)
    if (what === 0) {
      ended.push(process.name)
      await process.crash()
    } else if (what === 1) assert.equal(await process.stop(), 0)
    else {
      ended.push(process.name)
      process.freeze()
      await pause(random(2) === 0 ? 3000 : 14_000)
      process.thaw()
      await pause(3000)
      if (!process.isGone) await process.crash()
    }
    living.push(await log.open(`p${opened++}`))
  }
  isOver = true
  await Promise.all(clients)
  await handled(log, 't', 'work', ids)
  await isEmpty(log)
  // What its publisher got no answer for may have been stored later.
  const accepted = new Set(ids)
  const notes = orderOf(log, 't', 'work').filter(({ id }) => accepted.has(id))
  try {
    assertOrder(notes, ended)
  } catch (error) {
    const key = /^key \d+/.exec((error as Error).message)?.[0]
    const story = notes
      .filter((note) => note.key === key)
      .map(({ what, n, process, id }) => `${what} ${n} ${process} ${id}`)
    throw new Error(`${(error as Error).message}; ended: ${ended}\n${story.join('\n')}`)
  }
})

test('while a commit of another publisher is open, a blocked key with more rows than a page holds up no other key', async (t) => {
  const bench = await benchOnPostgres(t)
  if (bench === null) return t.skip('there is no such server')
  const { log, connect } = bench
  const first = await log.open('first')
  const bad = await first.publish('parked', { tag: 't', n: 0, course: ['unrecoverable'] }, { key: 'k' })
  await letterOf(log, first, bad, 'TakeWork')
  const rows = connect()
  await rows('BEGIN')
  await rows(insertOf('l', 1, null).replaceAll("'work'", "'parked'"))
  await first.burst(
    'parked',
    numbers(600).map((n) => ({ tag: 't', n: n + 1, key: 'k' })),
  )
  await first.publish('parked', { tag: 'other', n: 0 }, { key: 'other' })
  try {
    await until(() => notesOf(log, 'other', 'parked').length === 1, 'the event of another key', 5000)
  } finally {
    await rows('COMMIT')
  }
})
