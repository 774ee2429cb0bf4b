import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { Piscina } from 'piscina'
import type { Settings } from '../../../src/core/config/schema.ts'
import { type PoolMode, pgBouncerServer } from '../../support/servers/pgbouncer.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { programFor } from '../../support/servers/provide.ts'
import { runDbContract } from './contract.ts'
import { postgresDb } from './fixture.ts'
import { ORDERS, type OrderResult, type OrderTask } from './order-thread.ts'
import { rejectsWith } from './rejects-with.ts'

/** Few sessions for many connections, so that they meet. */
const FEW = { default_pool_size: '3' }
/** What a pooler of PostgreSQL may be set to drop. */
const DROPS = {
  ignore_startup_parameters: 'options,statement_timeout,idle_in_transaction_session_timeout,extra_float_digits',
}

const NAME = 'PostgreSQL behind a pooler'

describeOnPostgres(NAME, async (server) => {
  const owner = { after: () => {}, skip: (reason: string) => void test(NAME, { skip: reason }) }
  if ((await programFor(owner, 'pgbouncer')) !== null) runTests(server)
})

function runTests(server: PostgresServer): void {
  async function behind(t: TestContext, mode: PoolMode, settings: Record<string, string> = {}) {
    const pooler = (await pgBouncerServer(t, server, mode, settings))!
    const { host, port, user, password } = pooler
    const database = await server.createDatabase()
    const access = { host, port, user, password }
    /** @param options of a thread of the runtime */
    const db = (own: Partial<Settings> = {}, primary = false) =>
      postgresDb(t, access, database, {
        settings: { ...own },
        ...(primary ? { thread: { kind: 'primary' } as const } : {}),
      })
    return { pooler, access, database, db, direct: postgresDb(t, server, database) }
  }

  async function ordersOf(direct: ReturnType<typeof postgresDb>): Promise<void> {
    await direct.execute('CREATE TABLE orders (id INTEGER PRIMARY KEY)')
    await direct.execute(`INSERT INTO orders SELECT generate_series(1, ${ORDERS})`)
  }

  for (const rdbPooler of ['none', 'transaction'] as const) {
    test(`RDB_POOLER=${rdbPooler}, transaction pooler: no statement gets the answer of another thread's`, async (t) => {
      const place = await behind(t, 'transaction', { ...FEW, ...DROPS })
      await ordersOf(place.direct)
      const threads = new Piscina<OrderTask, OrderResult>({
        filename: new URL('./order-thread.ts', import.meta.url).href,
        maxThreads: 2,
        concurrentTasksPerWorker: 1,
        atomics: 'disabled',
      })
      threads.on('error', () => {})
      t.after(() => threads.destroy())
      const task = { server: place.access, database: place.database, rdbPooler, rounds: 40 }
      const results = await Promise.all(
        (['delete', 'read'] as const).map((statement) => threads.run({ ...task, statement })),
      )
      for (const { wrong, answers, sent } of results) {
        assert.deepEqual(wrong, [])
        if (rdbPooler === 'transaction') assert.equal(answers, sent)
      }
      assert.deepEqual(await place.direct.query('SELECT count(*) AS n FROM orders'), [{ n: ORDERS }])
    })
  }

  const refused = { code: 'DATABASE_SESSION', message: /RDB_POOLER=transaction, let the pooler keep sessions/ }
  const poolers: readonly [PoolMode, Record<string, string>][] = [
    ['transaction', {}],
    ['transaction', FEW],
    ['transaction', { default_pool_size: '1' }],
    ['transaction', { ...FEW, server_round_robin: '1' }],
    ['transaction', { ...FEW, server_reset_query_always: '1' }],
    ['statement', {}],
  ]
  for (const [mode, settings] of poolers) {
    const name = [mode, ...Object.entries(settings).map(([key, value]) => `${key}=${value}`)].join(', ')
    test(`start: refused behind a pooler that does not keep sessions (${name})`, async (t) => {
      const place = await behind(t, mode, settings)
      await assert.rejects(place.db({}, true).boot(), refused)
      // What the other clients of the pooler have set is as it was.
      assert.deepEqual(await settingsOf(place.db({ rdbPooler: 'transaction' }).query), PROMISED)
    })
  }

  test('start: refused behind a statement pooler whatever RDB_POOLER is', async (t) => {
    const place = await behind(t, 'statement')
    await assert.rejects(place.db({ rdbPooler: 'transaction' }, true).boot(), {
      code: 'DATABASE_SESSION',
      message: /pooling mode/,
    })
  })

  test('start: RDB_POOLER=transaction is refused where the isolation of statements would be another', async (t) => {
    const place = await behind(t, 'transaction')
    await place.direct.execute(`ALTER DATABASE "${place.database}" SET default_transaction_isolation = 'serializable'`)
    await assert.rejects(place.db({ rdbPooler: 'transaction' }, true).boot(), {
      code: 'DATABASE_SESSION',
      message: /default_transaction_isolation is "serializable".*ALTER ROLE/,
    })
  })

  const PROMISED = {
    zone: 'UTC',
    date: 'ISO',
    interval: 'postgres',
    bytes: 'hex',
    strings: 'on',
    path: '"public",pg_temp',
    isolation: 'read committed',
    limit: '30s',
  }

  async function settingsOf(query: ReturnType<typeof postgresDb>['query']) {
    const [row] = await query<Record<string, string>>(
      `SELECT current_setting('TimeZone') AS zone, split_part(current_setting('DateStyle'), ',', 1) AS date,
         current_setting('IntervalStyle') AS interval, current_setting('bytea_output') AS bytes,
         current_setting('standard_conforming_strings') AS strings, current_setting('search_path') AS path,
         current_setting('transaction_isolation') AS isolation, current_setting('statement_timeout') AS limit`,
    )
    return row
  }

  /** Settings of the database that would be wrong, each of them. */
  const ODD = [
    "timezone = 'Asia/Tokyo'",
    "datestyle = 'German'",
    "intervalstyle = 'iso_8601'",
    "bytea_output = 'escape'",
    'standard_conforming_strings = off',
    'search_path = elsewhere, public',
    "default_transaction_isolation = 'repeatable read'",
    'statement_timeout = 77',
  ]

  for (const [name, settings] of [
    ['as it comes', {}],
    ['dropping start-up parameters', DROPS],
    ['never resetting a session', { ...FEW, server_reset_query: '' }],
  ] as const) {
    test(`session pooler ${name}: every setting is as it must be`, async (t) => {
      const place = await behind(t, 'session', settings)
      await place.direct.execute('CREATE SCHEMA elsewhere')
      await place.direct.execute('CREATE TABLE elsewhere.things (id INTEGER)')
      await place.direct.execute('CREATE TABLE things (id INTEGER, at TIMESTAMPTZ, bytes BYTEA)')
      for (const odd of ODD) await place.direct.execute(`ALTER DATABASE "${place.database}" SET ${odd}`)
      for (let round = 0; round < 2; round++) {
        const db: ReturnType<typeof postgresDb> = place.db({ rdbMaxPool: 2, rdbMinPool: 0 }, true)
        await db.boot()
        assert.deepEqual(await settingsOf(db.query), PROMISED)
        const at = new Date(1_700_000_000_000)
        const stored = await db.queryOne('INSERT INTO things VALUES (1, $1, $2) RETURNING *', [
          at,
          Buffer.from([0, 92]),
        ])
        assert.deepEqual(stored, { id: 1, at: at.toISOString(), bytes: Buffer.from([0, 92]) })
        await db.transaction(async (tx) => {
          assert.deepEqual(await settingsOf(tx.query), { ...PROMISED, isolation: 'serializable' })
        })
        // The next client gets the session as this one leaves it.
        await db.execute(
          `DO $$ BEGIN PERFORM set_config('TimeZone', 'Europe/Vienna', false), set_config('search_path', 'elsewhere', false); END $$`,
        )
        await db.stop()
      }
    })
  }

  test('session pooler that keeps no session any more: an error, and never another session', async (t) => {
    const place = await behind(t, 'session', { default_pool_size: '20' })
    await ordersOf(place.direct)
    await place.direct.execute('CREATE SCHEMA elsewhere')
    await place.direct.execute('CREATE TABLE elsewhere.orders (id INTEGER PRIMARY KEY)')
    const [here, there] = [place.db(), place.db({ rdbSchema: 'elsewhere' })]
    const read = async (db: typeof here) => (await db.queryOne<{ n: number }>('SELECT count(*) AS n FROM orders'))!.n
    for (let n = 0; n < 3; n++) {
      await Promise.all(Array.from({ length: 8 }, () => Promise.all([read(here), read(there)])))
    }
    await place.pooler.reload({ pool_mode: 'transaction', ...FEW })
    const wrong: unknown[] = []
    const failures: Error[] = []
    let n = 0
    const asking = async (db: typeof here, expected: number) => {
      for (let round = 0; round < 30; round++) {
        // Known to the session, and new to it.
        const text =
          round % 2 === 0 ? 'SELECT count(*) AS n FROM orders' : `SELECT count(*) AS n, ${n++} AS new FROM orders`
        await db.queryOne<{ n: number }>(text).then(
          (row) => row!.n !== expected && wrong.push(row),
          (error) => failures.push(error),
        )
      }
    }
    await Promise.all(Array.from({ length: 8 }, () => Promise.all([asking(here, ORDERS), asking(there, 0)])))
    assert.deepEqual(wrong, [])
    for (const { message } of failures) assert.match(message, /RDB_POOLER/)
  })

  test('two connections that a pooler gives one session: neither runs in what the other has set', async (t) => {
    const place = await behind(t, 'transaction', { default_pool_size: '1' })
    await ordersOf(place.direct)
    await place.direct.execute('CREATE SCHEMA elsewhere')
    await place.direct.execute('CREATE TABLE elsewhere.orders (id INTEGER PRIMARY KEY)')
    const [here, there] = [place.db(), place.db({ rdbSchema: 'elsewhere' })]
    const known = 'SELECT count(*) AS n FROM orders'
    for (let n = 0; n < 3; n++) assert.deepEqual(await here.queryOne(known), { n: ORDERS })
    assert.deepEqual(await there.queryOne(known), { n: 0 })
    const asks = async (db: typeof here, n: number): Promise<void> => {
      const asked = [
        db.queryOne(known),
        db.queryOne(`${known} WHERE 1 = 1`),
        db.transaction((tx) => tx.queryOne(known)),
      ]
      for (const outcome of await Promise.allSettled(asked)) {
        if (outcome.status === 'fulfilled') assert.deepEqual(outcome.value, { n })
        else assert.match(outcome.reason.message, /RDB_POOLER/)
      }
    }
    for (let round = 0; round < 3; round++) {
      await asks(here, ORDERS)
      await asks(there, 0)
    }
  })

  test('RDB_POOLER=transaction leaves nothing in the sessions that others use', async (t) => {
    const place = await behind(t, 'transaction', { default_pool_size: '1' })
    const bare = new pg.Client({ ...place.access, database: place.database })
    bare.on('error', () => {})
    t.after(() => bare.end())
    await bare.connect()
    const look = async () =>
      (
        await bare.query(
          `SELECT name, setting FROM pg_settings WHERE source = 'session' AND name <> 'application_name'`,
        )
      ).rows
    const before = await look()
    const db = place.db({ rdbPooler: 'transaction', rdbMaxPool: 4 }, true)
    await db.boot()
    await db.query('SELECT 1')
    await db.transaction(async (tx) => void (await tx.query('SELECT 1')))
    await db.query('SELECT 1/0').catch(() => {})
    assert.deepEqual(await look(), before)
    assert.deepEqual((await bare.query('SELECT name FROM pg_prepared_statements')).rows, [])
  })

  test('RDB_POOLER=transaction: what the server refuses in a transaction says so', async (t) => {
    const place = await behind(t, 'transaction')
    const db = place.db({ rdbPooler: 'transaction' })
    await rejectsWith('other', db.execute('VACUUM'), /RDB_POOLER=transaction/)
    const name = `${place.database}_scratch`
    await db.execute(`CREATE DATABASE ${name}`)
    await db.execute(`DROP DATABASE ${name}`)
  })

  runDbContract('PgBouncer, RDB_POOLER=transaction', async (t) => {
    const place = await behind(t, 'transaction')
    return place.db({ rdbPooler: 'transaction' })
  })
}
