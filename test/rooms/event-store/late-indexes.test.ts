/** The indexes that are made when they are first needed. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Settings } from '../../../src/core/config/schema.ts'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { EventIndex } from '../../../src/primary/event-store/event-index.ts'
import { findCaused } from '../../../src/runtime/event-store/caused-rows.ts'
import { prepareTables } from '../../../src/runtime/event-store/tables.ts'
import type SqliteDb from '../../../src/tools/sqlite/index.ts'
import { pgBouncerServer } from '../../support/servers/pgbouncer.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { until } from '../../support/until.ts'
import { createDb, postgresDb, type ServerAccess } from '../db/fixture.ts'

const MANY = 300_000
const FEW = 1000
const INDEXES = ['heddle_delivery_caused', 'heddle_delivery_event']
const fill = (rows: number) => `INSERT INTO heddle_delivery (grp, slot, thread, event_id, event, envelope, payload)
  SELECT 1, 0, 0, 'evt_' || md5(n::text), 'e', '["evt_' || md5((n / 10)::text) || '"]', '{}' FROM generate_series(1, ${rows}) AS n`
const FOUND = `SELECT c.relname AS name, i.indisvalid AS is_valid FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
  WHERE c.relname LIKE 'heddle_delivery_caused' OR c.relname LIKE 'heddle_delivery_event' ORDER BY 1`

/** A database with rows, and what makes processes that use it. */
async function serverWithRows(t: TestContext, rows = FEW) {
  const server = await postgresServer(t)
  if (server === null) return null
  const database = await server.createDatabase()
  const process = (settings: Partial<Settings> = {}, access: ServerAccess = server) => {
    const db = postgresDb(t, access, database, { thread: { kind: 'primary' }, settings })
    return { db, index: new EventIndex(() => db, SYSTEM_CLOCK, SYSTEM_CHANCE) }
  }
  const { host, port, user, password } = server
  const client = new pg.Client({ host, port, user, password, database })
  // The server may end first.
  client.on('error', () => {})
  await client.connect()
  t.after(() => client.end())
  await prepareTables(process().db, true)
  await client.query(fill(rows))
  const found = async () => (await client.query<{ name: string; is_valid: boolean }>(FOUND)).rows
  const isMade = (names: readonly string[]) =>
    until(
      async () => {
        const rows = await found()
        return rows.length === names.length && rows.every(({ name, is_valid }) => is_valid && names.includes(name))
      },
      `valid indexes: ${names}`,
      60_000,
    )
  return { server, process, client, isMade }
}

test('two processes that want all indexes at once get them, however long that takes', async (t) => {
  const store = await serverWithRows(t, MANY)
  if (store === null) return
  const both = [store.process({ rdbStatementTimeoutMs: 100 }), store.process({ rdbStatementTimeoutMs: 100 })]
  for (const { index } of both) {
    index.want()
    index.wantCaused()
  }
  await store.isMade(INDEXES)
  const [{ deadlocks }] = (
    await store.client.query('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()')
  ).rows as [{ deadlocks: number }]
  assert.equal(deadlocks, 0)
})

test('an index that was given up is made anew', async (t) => {
  const store = await serverWithRows(t)
  if (store === null) return
  await store.client.query('CREATE INDEX heddle_delivery_event ON heddle_delivery (event_id)')
  await store.client.query(
    "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'heddle_delivery_event'::regclass",
  )
  store.process().index.want()
  await store.isMade(['heddle_delivery_event'])
})

test('an index that the server still makes for a process that is gone is waited for', async (t) => {
  const store = await serverWithRows(t)
  if (store === null) return
  const { db, index } = store.process()
  // It waits for this transaction.
  await store.client.query('BEGIN; INSERT INTO heddle_limit VALUES (1, 1, 1)')
  await store.client.query('LOCK TABLE heddle_delivery IN ROW EXCLUSIVE MODE')
  const made = db.apart('CREATE INDEX CONCURRENTLY heddle_delivery_event ON public.heddle_delivery (event_id)')
  const making = 'SELECT 1 FROM pg_stat_progress_create_index'
  await until(async () => (await db.query(making)).length === 1, 'that it is being made')
  index.want()
  await until(
    async () => (await db.query("SELECT 1 FROM heddle_lease WHERE name = 'index' AND expires_ms = 0")).length === 1,
    'that it was looked at',
  )
  await store.client.query('COMMIT')
  await made
  await store.isMade(['heddle_delivery_event'])
})

test('behind a pooler that keeps no sessions an index is made as well', async (t) => {
  const store = await serverWithRows(t)
  if (store === null) return
  const pooler = await pgBouncerServer(t, store.server, 'transaction')
  if (pooler === null) return
  store.process({ rdbPooler: 'transaction' }, pooler).index.want()
  await store.isMade(['heddle_delivery_event'])
})

const id = (n: number): string => `evt_${String(n).padStart(32, '0')}`

/** @param lineageOf the events above a row */
async function fileWithRows(t: TestContext, rows: number, lineageOf: string) {
  /** Statements that were sent to a process for heavy statements. */
  const heavy: string[] = []
  const db: SqliteDb = await createDb(t, {
    primary: () =>
      ({
        serve: (method: string, orders: readonly unknown[]) => {
          heavy.push((orders[0] as { sql?: string }).sql ?? '')
          return db.serve(method, orders)
        },
      }) as unknown as SqliteDb,
  })
  await prepareTables(db, true)
  await db.execute(
    `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${rows})
     INSERT INTO heddle_delivery (grp, thread, event_id, event, envelope, payload)
     SELECT 1, 0, 'evt_' || printf('%032d', n), 'e', '["' || ${lineageOf} || '",null,"","a.B",1,"id"]', '{"id":"' || n || '"}' FROM n`,
  )
  heavy.length = 0
  return { db, heavy }
}

test('SQLite: the indexes of a long table are made in a process of their own', async (t) => {
  const { db, heavy } = await fileWithRows(t, 110_000, "'no parent'")
  const made = (name: string) => heavy.some((sql) => sql.includes(`INDEX IF NOT EXISTS ${name} `))
  // As a file of an earlier release.
  await db.execute('DROP INDEX heddle_delivery_shared')
  await prepareTables(db, true)
  assert.ok(made('heddle_delivery_shared'))
  await new EventIndex(() => db, SYSTEM_CLOCK, SYSTEM_CHANCE).want()
  assert.ok(made('heddle_delivery_event'))
  assert.equal((await db.query("SELECT 1 FROM sqlite_master WHERE name = 'heddle_delivery_event'")).length, 1)
})

test('SQLite: what an event has caused is found a page at a time, wherever it stands above a row', async (t) => {
  const above = (n: string) => `printf('evt_%032d', ${n})`
  // Of each ten: the parent, the one above it, the sixteenth above, none.
  const sixteen = Array.from({ length: 15 }, (_, k) => above(`900000 + ${k}`)).join(" || ' ' || ")
  const { db, heavy } = await fileWithRows(
    t,
    5000,
    `CASE n % 10 WHEN 1 THEN ${above('77')} WHEN 2 THEN ${above('5')} || ' ' || ${above('77')}
      WHEN 3 THEN ${sixteen} || ' ' || ${above('77')} ELSE ${above('5')} END`,
  )
  let pauses = 0
  const found = await findCaused(db, id(77), async () => void pauses++)
  assert.deepEqual(
    found,
    Array.from({ length: 5000 }, (_, n) => n + 1).filter((n) => [1, 2, 3].includes(n % 10)),
  )
  assert.equal(pauses, 3)
  assert.deepEqual(await findCaused(db, 'evt_', async () => {}), [])
  assert.deepEqual(heavy, [])
})
