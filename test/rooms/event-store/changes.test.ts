import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { ownTransaction, type StoreDatabase } from '../../../src/runtime/event-store/database.ts'
import { serverInsertStatement } from '../../../src/runtime/event-store/server-rows.ts'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import { textArray } from '../../../src/runtime/event-store/text-array.ts'
import { writeStoreChanges } from '../../../src/runtime/event-store/write-changes.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'
import type { FencedSlot, StoreChanges } from '../../../src/transport/store-changes.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { until } from '../../support/until.ts'
import { postgresDb } from '../db/fixture.ts'

const EVENTS = 1000
const ME = 7
const NOTHING: StoreChanges = {
  done: [],
  noted: [],
  begun: [],
  deadLetters: [],
  replayed: [],
  groups: [],
  promoteMs: 0,
}

interface StoredRow {
  seq: number
  grp: number
  slot: number
  attempt: number
  due_ms: number
  event_id: string
}

const frameOf = (n: number, key: string | null = null): EventFrame => ({
  id: `evt_${String(n).padStart(5, '0')}`,
  parentId: null,
  ancestors: '',
  event: 'order.taken',
  emitter: 'shop',
  requestId: null,
  key,
  trace: '',
  payloadKeys: '',
  timestampMs: 1,
  delayMs: 0,
  ttlMs: 0,
  unique: null,
  shares: '',
  seq: 0,
  subscriber: 0,
  attempt: 0,
  beginBy: 0,
  payload: '{}',
})

/** A group with all of its slots at this member. */
async function serverWithGroup(t: TestContext) {
  const server = await postgresServer(t)
  if (server === null) return null
  const db = postgresDb(t, server, server.database) as unknown as StoreDatabase
  await prepareTables(db, true)
  await db.execute("INSERT INTO heddle_group (id, event, grp, seen_ms) VALUES (1, 'order.taken', 'shop.onTaken', 0)")
  await db.execute(
    'INSERT INTO heddle_slot (grp, slot, member, epoch) SELECT 1, generate_series(0, 15), $1::bigint, 3',
    [ME],
  )
  const insert = async (frames: readonly EventFrame[]): Promise<void> => {
    const { sql, params } = serverInsertStatement('groups', frames, ME, 1)
    await db.execute(sql, params)
  }
  const rows = () =>
    db.query<StoredRow>('SELECT seq, grp, slot, attempt, due_ms, event_id FROM heddle_delivery ORDER BY seq')
  /** A connection that the test ends. */
  const connect = async (): Promise<pg.Client> => {
    const { host, port, user, password, database } = server
    const client = new pg.Client({ host, port, user, password, database })
    client.on('error', () => {})
    await client.connect()
    return client
  }
  return { db, insert, rows, connect }
}

const slotsOf = (rows: readonly StoredRow[], epoch = 3): FencedSlot[] =>
  [...new Set(rows.map(({ slot }) => Number(slot)))].map((slot) => ({
    group: 1,
    slot,
    epoch,
    seqs: rows.flatMap((row) => (Number(row.slot) === slot ? [Number(row.seq)] : [])),
  }))

const noted = (seq: number, attempt: number) => ({
  seq,
  attempt,
  deaths: 0,
  error: `attempt ${attempt} \u0000 \ud800`,
  isBegun: true,
  retryMs: 0,
  dueMs: 0,
})

test('PostgreSQL reads lists of texts as they were written', async (t) => {
  const server = await serverWithGroup(t)
  if (server === null) return
  const texts = ['', null, 'NULL', '{"a": [1, "b"]}', 'it\'s \\ {},"', 'ä€😀\n', ' ', 'x'.repeat(100_000)]
  for (const list of [texts, [], [null], ['ä']]) {
    const sql = 'SELECT CAST(to_json($1::text[]) AS text) AS json'
    const row: { json: string } | null = await server.db.queryOne(sql, [textArray(list)])
    assert.deepEqual(JSON.parse(row!.json), list)
  }
})

test('what becomes of many deliveries takes few statements', async (t) => {
  const server = await serverWithGroup(t)
  if (server === null) return
  const { db, insert, rows } = server
  for (let from = 0; from < EVENTS; from += 250)
    await insert(Array.from({ length: 250 }, (_, n) => frameOf(from + n, n % 2 === 0 ? `k${n}` : null)))
  const stored = await rows()
  assert.deepEqual(
    stored.map(({ event_id }) => event_id),
    Array.from({ length: EVENTS }, (_, n) => frameOf(n).id),
    'in the order of the events',
  )
  let statements = 0
  const counting = {
    ...db,
    execute: (...args: Parameters<StoreDatabase['execute']>) => {
      statements++
      return db.execute(...args)
    },
    transaction: (work: (tx: StoreDatabase) => Promise<unknown>) =>
      ownTransaction(db, (tx) =>
        work({
          ...tx,
          query: (...args: Parameters<StoreDatabase['query']>) => {
            statements++
            return tx.query(...args)
          },
          execute: (...args: Parameters<StoreDatabase['execute']>) => {
            statements++
            return tx.execute(...args)
          },
        } as StoreDatabase),
      ),
  } as unknown as StoreDatabase
  const seqs = stored.map(({ seq }) => Number(seq))
  // Each has failed once, and half of them once more before this was written.
  const notes = seqs.map((seq) => noted(seq, 2)).concat(seqs.filter((_, n) => n % 2 === 0).map((seq) => noted(seq, 3)))
  const fences = { member: ME, slots: slotsOf(stored) }
  assert.deepEqual(await writeStoreChanges(counting, { ...NOTHING, noted: notes, fences }), { promoted: [], lost: [] })
  assert.ok(statements > 0 && statements < 5, `${statements} statements`)
  for (const [n, { attempt }] of (await rows()).entries()) assert.equal(Number(attempt), n % 2 === 0 ? 3 : 2)
  statements = 0
  await writeStoreChanges(counting, { ...NOTHING, done: seqs.slice(0, 700), fences })
  assert.equal(statements, 1)
  assert.equal((await rows()).length, 300)
})

test('of a slot that another process has taken nothing is written, and the answer says so', async (t) => {
  const server = await serverWithGroup(t)
  if (server === null) return
  const { db, insert, rows } = server
  await insert([frameOf(1, 'a'), frameOf(2, 'b'), frameOf(3, 'c'), frameOf(4, 'd')])
  const stored = await rows()
  const slots = slotsOf(stored)
  assert.ok(slots.length >= 2)
  const [lost, ...kept] = slots
  await db.execute('UPDATE heddle_slot SET epoch = 4, member = 8 WHERE slot = $1', [lost!.slot])
  const keptSeqs = kept.flatMap((each) => each.seqs)
  const fences = { member: ME, slots }
  const all = stored.map(({ seq }) => Number(seq))
  const changes = { ...NOTHING, noted: all.map((seq) => noted(seq, 5)), fences }
  assert.deepEqual((await writeStoreChanges(db, changes)).lost, [0])
  for (const { seq, attempt } of await rows()) assert.equal(Number(attempt), keptSeqs.includes(Number(seq)) ? 5 : 1)
  assert.deepEqual((await writeStoreChanges(db, { ...NOTHING, done: all, fences })).lost, [0])
  assert.deepEqual(
    (await rows()).map(({ seq }) => Number(seq)),
    lost!.seqs,
  )
  const other = { member: 8, slots: [{ ...lost!, epoch: 4 }] }
  assert.deepEqual((await writeStoreChanges(db, { ...NOTHING, done: all, fences: other })).lost, [])
  assert.equal((await rows()).length, 0)
})

test('whoever takes a slot waits for what its owner is writing', async (t) => {
  const server = await serverWithGroup(t)
  if (server === null) return
  const { db, insert, rows } = server
  await insert([frameOf(1, 'a')])
  const [row] = await rows()
  const order: string[] = []
  let taken: Promise<unknown> = Promise.resolve()
  await ownTransaction(db, async (tx) => {
    await tx.query('SELECT 1 FROM heddle_slot WHERE grp = 1 AND slot = $1 AND member = $2 FOR SHARE', [row!.slot, ME])
    taken = db
      .execute('UPDATE heddle_slot SET member = 8, epoch = epoch + 1 WHERE grp = 1 AND slot = $1', [row!.slot])
      .then(() => order.push('taken'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    await tx.execute('DELETE FROM heddle_delivery WHERE seq = $1', [row!.seq])
    order.push('deleted')
  })
  await taken
  assert.deepEqual(order, ['deleted', 'taken'])
})

test('a batch that a dead lane is still committing comes before its repetition, and before later notes', async (t) => {
  const server = await serverWithGroup(t)
  if (server === null) return
  const { db, insert, rows } = server
  await insert([frameOf(1, 'a')])
  const stored = await rows()
  const fences = { member: ME, slots: slotsOf(stored) }
  const batch = (attempt: number) => ({ ...NOTHING, noted: [noted(Number(stored[0]!.seq), attempt)], fences })
  let goOn = (): void => {}
  const held = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const order: string[] = []
  // All of its statements have run, and its COMMIT is late.
  const slow = {
    ...db,
    transaction: (work: (tx: StoreDatabase) => Promise<unknown>) =>
      ownTransaction(db, async (tx) => {
        const answer = await work(tx as StoreDatabase)
        order.push('written')
        await held
        return answer
      }),
  } as unknown as StoreDatabase
  const first = writeStoreChanges(slow, batch(2)).then(() => order.push('first'))
  await until(() => order.length === 1, 'its statements have run')
  const second = writeStoreChanges(db, batch(2))
    .then(() => order.push('second'))
    .then(() => writeStoreChanges(db, batch(3)))
    .then(() => order.push('third'))
  await sleep(500)
  assert.deepEqual(order, ['written'])
  goOn()
  await Promise.all([first, second])
  assert.deepEqual(order, ['written', 'first', 'second', 'third'])
  assert.equal(Number((await rows())[0]!.attempt), 3)
})

test('a batch that a lane writes after it was given up changes no later note', async (t) => {
  const server = await serverWithGroup(t)
  if (server === null) return
  const { db, insert, rows } = server
  await insert([frameOf(1, 'a')])
  const stored = await rows()
  const fences = { member: ME, slots: slotsOf(stored) }
  for (const attempt of [2, 3, 2])
    await writeStoreChanges(db, { ...NOTHING, noted: [noted(Number(stored[0]!.seq), attempt)], fences })
  assert.equal(Number((await rows())[0]!.attempt), 3)
})

test('a statement of a dead lane that runs late is never committed', async (t) => {
  const server = await serverWithGroup(t)
  if (server === null) return
  const { db, insert, rows, connect } = server
  await insert([frameOf(1, 'a')])
  const [row] = await rows()
  const lane = await connect()
  await lane.query('BEGIN')
  await ownTransaction(db, async (tx) => {
    await tx.execute('UPDATE heddle_delivery SET attempt = 3 WHERE seq = $1', [row!.seq])
    lane.query('UPDATE heddle_delivery SET attempt = 2').catch(() => {})
    const waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%attempt = 2%'"
    await until(async () => (await db.query(waits)).length > 0, 'it waits')
    lane.connection.stream.destroy()
  })
  const isOver = async () =>
    (await db.query("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'UPDATE%attempt = 2%'")).length === 0
  await until(isOver, 'the server has noticed')
  assert.equal(Number((await rows())[0]!.attempt), 3)
})

test('rows that are due come to the end in the order of their times, those of slots that this process has', async (t) => {
  const server = await serverWithGroup(t)
  if (server === null) return
  const { db, insert, rows } = server
  await insert([frameOf(1, 'a'), frameOf(2, 'b'), frameOf(3, 'c'), frameOf(4, 'd')])
  const stored = await rows()
  for (const [n, { seq }] of stored.entries())
    await db.execute('UPDATE heddle_delivery SET due_ms = $1 WHERE seq = $2', [1000 - n, seq])
  const other = Number(stored[1]!.slot)
  await db.execute('UPDATE heddle_slot SET member = 8 WHERE slot = $1', [other])
  const answer = await writeStoreChanges(db, { ...NOTHING, promoteMs: 2000, fences: { member: ME, slots: [] } })
  assert.deepEqual(answer.promoted, [1])
  const now = await rows()
  const isOwn = ({ slot }: StoredRow): boolean => Number(slot) !== other
  assert.deepEqual(
    now.filter(({ due_ms }) => Number(due_ms) === 0).map(({ event_id }) => event_id),
    stored
      .filter(isOwn)
      .map(({ event_id }) => event_id)
      .reverse(),
  )
  assert.ok(now.every((row) => Number(row.due_ms) > 0 === !isOwn(row)))
})
