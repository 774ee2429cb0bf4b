import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Settings } from '../../../src/core/config/schema.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { gate, postgresDb } from './fixture.ts'
import { rejectsWith } from './rejects-with.ts'

describeOnPostgres('sessions of PostgreSQL', runTests)

function runTests(server: PostgresServer): void {
  const { host, port, user, password, database } = server
  const admin = new pg.Pool({ host, port, user, password, database, max: 2 })
  admin.on('error', () => {})
  after(() => admin.end())
  const dbWith = (t: TestContext, settings: Partial<Settings> = {}) => postgresDb(t, server, database, { settings })
  /** One connection for the whole tool, so that it is known which one a statement runs on. */
  const ONE = { rdbMaxPool: 2 }

  test('a connection says whose it is', async (t) => {
    const db = dbWith(t, { replicaId: 'replica-7' })
    const row = await db.queryOne(
      `SELECT application_name, current_setting('TimeZone') AS zone, current_setting('statement_timeout') AS limit,
         current_setting('idle_in_transaction_session_timeout') AS idle
       FROM pg_stat_activity WHERE pid = pg_backend_pid()`,
    )
    assert.deepEqual(row, { application_name: 'heddle lane 0 replica-7', zone: 'UTC', limit: '30s', idle: '15s' })
  })

  test('what decoding relies on holds whatever the user’s own settings are', async (t) => {
    await admin.query(`CREATE ROLE odd LOGIN PASSWORD 'odd'`)
    await admin.query(`ALTER ROLE odd SET timezone = 'Asia/Tokyo'`)
    await admin.query(`ALTER ROLE odd SET datestyle = 'German'`)
    await admin.query(`ALTER ROLE odd SET bytea_output = 'escape'`)
    const db = dbWith(t, { rdbUser: 'odd', rdbPassword: 'odd' })
    const row = await db.queryOne(`SELECT CAST($1 AS TIMESTAMPTZ) AS at, CAST($2 AS BYTEA) AS bytes`, [
      new Date(1700000000000),
      new Uint8Array([0, 92, 255]),
    ])
    assert.deepEqual(row, { at: '2023-11-14T22:13:20.000Z', bytes: Buffer.from([0, 92, 255]) })
  })

  test('a statement is prepared when it comes again, and the least recently used are given up', async (t) => {
    const db = dbWith(t, ONE)
    const prepared = async () =>
      (await db.query<{ statement: string }>('SELECT statement FROM pg_prepared_statements')).map(
        ({ statement }) => statement,
      )
    for (let n = 0; n < 20; n++) await db.query(`SELECT ${n} AS once`)
    assert.deepEqual(
      (await prepared()).filter((sql) => sql.includes('once')),
      [],
    )
    for (let n = 0; n < 300; n++) for (let use = 0; use < 2; use++) await db.query(`SELECT ${n} AS n`)
    const kept = await prepared()
    assert.ok(kept.length <= 258, `${kept.length} are kept`)
    assert.ok(kept.includes('SELECT 299 AS n'))
    assert.ok(!kept.includes('SELECT 0 AS n'))
  })

  test('a statement that fails while it is prepared is prepared the next time', async (t) => {
    const db = dbWith(t, ONE)
    const read = () => db.query('SELECT n FROM appears_later')
    for (let n = 0; n < 3; n++) await rejectsWith('syntax', read())
    await admin.query('CREATE TABLE appears_later (n INTEGER)')
    for (let n = 0; n < 3; n++) assert.deepEqual(await read(), [])
    // It fails when it is run, not when it is prepared.
    const divide = (by: number) => db.queryOne('SELECT 6 / CAST($1 AS INTEGER) AS n', [by])
    for (const by of [0, 0, 2, 0, 3]) {
      if (by === 0) await rejectsWith('other', divide(by), /division by zero/)
      else assert.deepEqual(await divide(by), { n: 6 / by })
    }
  })

  test('a transaction that only reads waits for no other, whatever the user’s own settings are', async (t) => {
    await admin.query(`CREATE ROLE deferring LOGIN PASSWORD 'deferring'`)
    await admin.query('ALTER ROLE deferring SET default_transaction_deferrable = on')
    const db = dbWith(t, { rdbUser: 'deferring', rdbPassword: 'deferring' })
    const { opened, open } = gate()
    const began = gate()
    const writing = dbWith(t).transaction(async (tx) => {
      await tx.execute('CREATE TABLE deferred (id INTEGER)')
      began.open()
      await opened
    })
    await began.opened
    const reading = db.transaction((tx) => tx.queryOne('SELECT 1 AS one'), undefined, undefined, { readOnly: true })
    assert.deepEqual(await reading, { one: 1 })
    open()
    await writing
  })

  test('a table that another process changes is read in its new shape, also by a transaction under way', async (t) => {
    const db = dbWith(t)
    await admin.query('CREATE TABLE changing (id TEXT)')
    await admin.query(`INSERT INTO changing VALUES ('a')`)
    const all = 'SELECT * FROM changing'
    // Prepared on several connections.
    for (let n = 0; n < 3; n++) await Promise.all(Array.from({ length: 8 }, () => db.query(all)))
    await admin.query(`ALTER TABLE changing ADD COLUMN n INTEGER DEFAULT 1`)
    const rows = await Promise.all(Array.from({ length: 20 }, () => db.query(all)))
    for (const row of rows) assert.deepEqual(row, [{ id: 'a', n: 1 }])
    const single = dbWith(t, ONE)
    for (let n = 0; n < 3; n++) await single.query(all)
    await admin.query(`ALTER TABLE changing ADD COLUMN m INTEGER DEFAULT 2`)
    let runs = 0
    const seen = await single.transaction(async (tx) => {
      runs++
      await tx.execute(`UPDATE changing SET n = n + 1`)
      return tx.query(all)
    })
    assert.deepEqual(seen, [{ id: 'a', n: 2, m: 2 }])
    assert.equal(runs, 2)
  })

  test('a transaction begins although a schema has come or gone on an open connection', async (t) => {
    const db = dbWith(t, { ...ONE, rdbSchema: 'late' })
    const schema = `public_${process.pid}`
    for (const isolation of ['serializable', 'repeatable read', 'read committed'] as const) {
      await db.query('SELECT 1')
      await admin.query(isolation === 'repeatable read' ? `DROP SCHEMA ${schema}` : `CREATE SCHEMA ${schema}`)
      const level = await db.transaction(
        (tx) => tx.queryOne("SELECT current_setting('transaction_isolation') AS level"),
        undefined,
        undefined,
        { isolation },
      )
      assert.deepEqual(level, { level: isolation })
    }
    await admin.query(`DROP SCHEMA ${schema}`)
  })

  test('statements that the server has forgotten are prepared anew', async (t) => {
    const db = dbWith(t, ONE)
    for (let n = 0; n < 3; n++) await db.query('SELECT 1 AS one')
    await db.execute(`DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$`)
    assert.deepEqual(await db.query('SELECT 1 AS one'), [{ one: 1 }])
  })

  test('two transactions that wait for each other both come through: the one that lost is run again', async (t) => {
    const db = dbWith(t)
    await db.execute('CREATE TABLE pair (id TEXT PRIMARY KEY, n INTEGER)')
    await db.execute(`INSERT INTO pair VALUES ('a', 0), ('b', 0)`)
    const bothIn = [gate(), gate()]
    let runs = 0
    const cross = (first: string, second: string, own: number) =>
      db.transaction(async (tx) => {
        runs++
        await tx.execute('UPDATE pair SET n = n + 1 WHERE id = $1', [first])
        bothIn[own]!.open()
        await bothIn[1 - own]!.opened
        await tx.execute('UPDATE pair SET n = n + 1 WHERE id = $1', [second])
      })
    await Promise.all([cross('a', 'b', 0), cross('b', 'a', 1)])
    assert.deepEqual(await db.query('SELECT n FROM pair'), [{ n: 2 }, { n: 2 }])
    assert.ok(runs > 2, `${runs} runs`)
  })

  test('a transaction that collides again and again fails with DB_CONTENDED after 15 s; a plain statement that may have committed does at once', async (t) => {
    const db = dbWith(t)
    const collide = `DO $$ BEGIN RAISE EXCEPTION 'collision' USING ERRCODE = '40001'; END $$`
    let runs = 0
    const startedMs = performance.now()
    const transaction = db.transaction(async (tx) => {
      runs++
      await tx.execute(collide)
    })
    await rejectsWith('serialization', transaction, /collision/, 'DB_CONTENDED')
    assert.ok(performance.now() - startedMs >= 14_900)
    assert.ok(runs > 10)
    await rejectsWith('serialization', db.execute(collide), /collision/, 'DB_CONTENDED')
  })

  test('a callback that fails for a reason of its own is not run again', async (t) => {
    const db = dbWith(t)
    let runs = 0
    const transaction = db.transaction(async () => {
      runs++
      throw new Error('mine')
    })
    await assert.rejects(transaction, /mine/)
    assert.equal(runs, 1)
  })

  test('a transaction leaves nothing on its connection', async (t) => {
    const db = dbWith(t, ONE)
    const setting = async () =>
      (await db.queryOne<{ value: string }>(`SELECT current_setting('work_mem') AS value`))?.value
    const before = await setting()
    await db.transaction((tx) => tx.execute(`SET LOCAL work_mem = '1234kB'`))
    assert.equal(await setting(), before)
    await assert.rejects(
      db.transaction(async (tx) => {
        await tx.execute(`SET LOCAL work_mem = '1234kB'`)
        throw new Error('rolled back')
      }),
    )
    assert.equal(await setting(), before)
    const level = await db.queryOne(`SELECT current_setting('transaction_isolation') AS level`)
    assert.deepEqual(level, { level: 'read committed' })
  })

  test('with one connection only, what waits for itself is told so after 5 s', async (t) => {
    const db = dbWith(t, ONE)
    const transaction = db.transaction(() => db.query('SELECT 1'))
    await rejectsWith('timeout', transaction, /through the callback’s own tx/)
    assert.equal(await db.healthCheck(), true)
  })

  test('after its stop it takes nothing more', async (t) => {
    const db = dbWith(t)
    await db.query('SELECT 1')
    const last = db.query('SELECT pg_sleep(0.1), 1 AS n')
    await db.stop()
    assert.equal((await last).length, 1)
    await rejectsWith('unavailable', db.query('SELECT 1'), /closed/)
    await rejectsWith(
      'unavailable',
      db.transaction((tx) => tx.query('SELECT 1')),
      /closed/,
    )
  })
}
