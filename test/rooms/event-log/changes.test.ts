import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Queryable } from '../../../src/contracts/db.ts'
import { prepareTables } from '../../../src/runtime/event-log/tables.ts'
import { writeChanges } from '../../../src/runtime/event-log/write-changes.ts'
import type { LogDatabase } from '../../../src/runtime/event-store/database.ts'
import type { LogChanges, WaitingDelivery } from '../../../src/transport/log-changes.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { type createDb, postgresDb } from '../db/fixture.ts'

const EVENTS = 1000
const NOTHING: LogChanges = {
  forget: [],
  split: [],
  done: [],
  waiting: [],
  letters: [],
  replayed: [],
  released: [],
  groups: [],
}

type Db = Awaited<ReturnType<typeof createDb>> | ReturnType<typeof postgresDb>

async function onServer(t: TestContext): Promise<Db | null> {
  const server = await postgresServer(t)
  return server === null ? null : postgresDb(t, server, server.database)
}

const waitingOf = (seq: number, group: string, attempt: number): WaitingDelivery => ({
  seq,
  group,
  attempt,
  deaths: 0,
  dueMs: 1_700_000_000_000 + seq,
  error: `attempt ${attempt}`,
})

for (const [name, dbOf] of [['PostgreSQL', onServer]] as const) {
  test(`what becomes of many deliveries takes few statements (${name})`, async (t) => {
    const db = await dbOf(t)
    if (db === null) return
    let statements = 0
    const count = (tx: Queryable): Queryable => {
      const execute: Queryable['execute'] = (sql, params) => {
        statements++
        return tx.execute(sql, params)
      }
      return { ...tx, execute }
    }
    const counting = { transaction: (work) => db.transaction((tx) => work(count(tx))) } as LogDatabase
    await prepareTables(db, true)
    const owned = ['owner, ord, ', '0, 0, ']
    const numbers = Array.from({ length: EVENTS }, (_, n) => n + 1)
    await db.execute(
      `INSERT INTO heddle_event (${owned[0]}seq, id, event, envelope, payload, due_ms, expires_ms)
       WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < ${EVENTS})
       SELECT ${owned[1]}seq, 'evt', 'order.taken', '[]', '{}', 0, 0 FROM n`,
    )
    const rows = () =>
      db.query('SELECT seq, grp, attempt FROM heddle_delivery ORDER BY seq, grp') as Promise<Record<string, unknown>[]>

    statements = 0
    // Each has failed once for one group; half of them once more before this was written.
    const waiting = numbers.flatMap((seq) => [waitingOf(seq, 'slow', 1), waitingOf(seq, 'quick', 2)])
    for (const seq of numbers) if (seq % 2 === 0) waiting.push(waitingOf(seq, 'slow', 3))
    await writeChanges(counting, { ...NOTHING, waiting }, 0)
    assert.ok(statements > 0 && statements < 60, `${statements} statements`)
    const stored = await rows()
    assert.equal(stored.length, 2 * EVENTS)
    const attemptOf = (seq: number, group: unknown): number => (group === 'quick' ? 2 : seq % 2 === 0 ? 3 : 1)
    for (const { seq, grp, attempt } of stored) assert.equal(Number(attempt), attemptOf(Number(seq), grp))

    statements = 0
    const done = numbers.flatMap((seq) => (seq <= 700 ? [{ seq, group: 'quick' }] : []))
    const split = numbers.filter((seq) => seq > 900)
    await writeChanges(counting, { ...NOTHING, done, split, forget: [...split] }, 0)
    assert.ok(statements > 0 && statements < 20, `${statements} statements`)
    const left = await rows()
    assert.deepEqual(
      left.map(({ seq, grp }) => `${seq} ${grp}`),
      numbers.flatMap((seq) => (seq > 900 ? [] : seq <= 700 ? [`${seq} slow`] : [`${seq} quick`, `${seq} slow`])),
    )
    assert.equal((await db.query('SELECT seq FROM heddle_event')).length, 900)
  })
}
