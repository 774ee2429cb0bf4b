import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import { writeStoreChanges } from '../../../src/runtime/event-store/write-changes.ts'
import { memoryDatabase } from '../../support/memory-database.ts'

test('writeStoreChanges(): writes no older note over a newer one on SQLite', async (t) => {
  const db = memoryDatabase(t)
  await prepareTables(db, true)
  await db.execute(
    "INSERT INTO heddle_delivery (grp, thread, event_id, event, envelope, payload) VALUES (1, 1, 'evt_1', 'order.taken', '', '{}')",
  )
  const [row] = await db.query<{ seq: number }>('SELECT seq FROM heddle_delivery')
  const none = { done: [], begun: [], deadLetters: [], replayed: [], groups: [], promoteMs: 0 }
  const note = (attempt: number, deaths: number) =>
    writeStoreChanges(db, {
      ...none,
      noted: [{ seq: row!.seq, attempt, deaths, error: `attempt ${attempt}`, isBegun: true, retryMs: 0, dueMs: 0 }],
    })
  const stored = async () => {
    const [{ attempt, deaths, error }] = (await db.query<{ attempt: number; deaths: number; error: string }>(
      'SELECT attempt, deaths, error FROM heddle_delivery',
    )) as [{ attempt: number; deaths: number; error: string }]
    return [attempt, deaths, error]
  }
  await note(3, 1)
  await note(2, 0)
  assert.deepEqual(await stored(), [3, 1, 'attempt 3'])
  // The death that was noted of a suspect is taken back.
  await note(3, 0)
  assert.deepEqual(await stored(), [3, 0, 'attempt 3'])
})

test('writeStoreChanges(): the replay of a dead letter that was due later stays one on SQLite', async (t) => {
  const db = memoryDatabase(t)
  await prepareTables(db, true)
  await db.execute(
    "INSERT INTO heddle_delivery (place, grp, thread, event_id, event, envelope, payload, due_ms) VALUES (1, 1, 1, 'evt_1', 'order.taken', '', '{}', 5)",
  )
  const [row] = await db.query<{ seq: number }>('SELECT seq FROM heddle_delivery')
  await db.execute(
    `INSERT INTO heddle_dead (id, event_id, event, grp, subscriber, envelope, payload, error, attempts, bytes, at_ms, replay, replay_seq)
     VALUES ('dl_1', 'evt_1', 'order.taken', 'shop', 'shop', '', '{}', 'Away', 1, 2, 1, 'running', $1)`,
    [row!.seq],
  )
  const none = { done: [], begun: [], noted: [], deadLetters: [], groups: [] }
  const { promoted } = await writeStoreChanges(db, { ...none, replayed: [], promoteMs: 10 })
  assert.deepEqual(promoted, [1])
  const [moved] = await db.query<{ seq: number }>('SELECT seq FROM heddle_delivery')
  assert.ok(moved!.seq > row!.seq)
  assert.deepEqual(await db.query('SELECT replay, replay_seq FROM heddle_dead'), [
    { replay: 'running', replay_seq: moved!.seq },
  ])
})

test('writeStoreChanges(): a dead letter whose row was taken back is not stored on SQLite, and the answer names it', async (t) => {
  const db = memoryDatabase(t)
  await prepareTables(db, true)
  await db.execute(
    "INSERT INTO heddle_delivery (grp, thread, event_id, event, envelope, payload) VALUES (1, 1, 'evt_1', 'order.taken', '', '{}')",
  )
  await db.execute(
    "INSERT INTO heddle_group (id, event, grp, kind, seen_ms) VALUES (1, 'order.taken', 'shop', 'group', 1)",
  )
  const [{ seq }] = (await db.query<{ seq: number }>('SELECT seq FROM heddle_delivery')) as [{ seq: number }]
  const row = {
    id: 'dl_1',
    eventId: 'evt_1',
    event: 'order.taken',
    group: 'shop',
    subscriber: 'shop',
    key: '"k"',
    envelope: '',
    payload: '{}',
    error: 'as wanted',
    attempts: 1,
    blackBox: null,
    bytes: 2,
    atMs: 1,
    isParked: true,
  }
  const none = { done: [], begun: [], noted: [], replayed: [], groups: [], promoteMs: 0 }
  const write = (id: string, of: number) =>
    writeStoreChanges(db, { ...none, deadLetters: [{ row: { ...row, id }, seq: of, place: of }] })
  assert.equal((await write('dl_1', seq)).unstored, undefined)
  // Its answer was lost: it is written again.
  assert.deepEqual((await write('dl_1', seq)).unstored, [])
  assert.deepEqual((await write('dl_2', seq)).unstored, ['dl_2'])
  assert.deepEqual(await db.query('SELECT id FROM heddle_dead'), [{ id: 'dl_1' }])
})
