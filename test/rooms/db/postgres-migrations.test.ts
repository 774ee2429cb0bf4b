import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import type { Row } from '../../../src/contracts/db.ts'
import { toDbError } from '../../../src/extras/postgres/failure.ts'
import { PostgresMigrations } from '../../../src/extras/postgres/migration-driver.ts'
import { migrate, settle } from '../../../src/stores/migrations/runner.ts'
import type { Outcome } from '../../../src/stores/sql/database.ts'
import { temporaryFolder } from '../../support/folder.ts'
import type { PostgresServer } from '../../support/servers/postgres.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'
import { type LogLine, postgresDb, postgresSettings, writeFiles } from './fixture.ts'
import { runMigrationSuite, start } from './migration-suite.ts'
import { rejectsWith } from './rejects-with.ts'

describeOnPostgres('migrations on PostgreSQL', (server) => {
  runMigrationSuite(
    'PostgreSQL',
    async (t) => {
      const { database, client, driver } = await connected(t, server)
      const query = async (sql: string) => (await client.query<Row>(sql)).rows
      return {
        driver,
        query,
        tables: async () =>
          (
            await query(`SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename COLLATE "C"`)
          ).map(({ tablename }) => String(tablename)),
        boot: async (options) => {
          const db = postgresDb(t, server, database, options)
          await db.boot()
          return db
        },
        address: {
          tool: 'postgres',
          options: { thread: { kind: 'primary' }, settings: postgresSettings(server, database) },
        },
      }
    },
    {
      missingTable: /relation "no_such_table" does not exist in line 1/,
      alone: (n) => `CREATE INDEX CONCURRENTLY by_${n} ON log (entry)`,
    },
  )
  runTests(server)
})

/** A connection to a new database, and migrations over another one. */
async function connected(t: TestContext, server: PostgresServer, waitMs?: number) {
  const database = await server.createDatabase()
  const { host, port, user, password } = server
  const open = async () => {
    const client = new pg.Client({ host, port, user, password, database })
    client.on('error', () => {})
    await client.connect()
    t.after(() => client.end())
    return client
  }
  const [client, own] = [await open(), await open()]
  const send = (sql: string, params?: unknown[]) =>
    own.query(sql, params).catch((thrown) => {
      throw toDbError(thrown)
    })
  const driver = new PostgresMigrations(
    {
      run: async (sql, params): Promise<Outcome> => {
        const { rows, rowCount } = await send(sql, [...params])
        return { rows, rowCount: rowCount ?? 0 }
      },
      script: async (sql) => void (await send(sql)),
      keepsSession: true,
      renew: async () => void (await send('DISCARD ALL')),
      setLocal: 'SET LOCAL search_path = public, pg_temp',
      get isClean() {
        return own.getTransactionStatus() === 'I'
      },
    },
    () => {},
    waitMs,
  )
  return { database, client, driver }
}

function runTests(server: PostgresServer): void {
  async function withMigrations(t: TestContext, files: Record<string, string>, waitMs?: number) {
    const folder = temporaryFolder(t)
    await writeFiles(
      folder,
      Object.fromEntries(Object.entries(files).map(([id, sql]) => [`a/migrations/${id}.sql`, sql])),
    )
    const { client, driver, database } = await connected(t, server, waitMs)
    return { folder, client, driver, database, run: () => migrate(driver, [folder], () => {}) }
  }

  test('statements run verbatim: semicolons in strings, comments and bodies are no ends', async (t) => {
    const { client, run } = await withMigrations(t, {
      '001_one': `
        CREATE TABLE a1 (id TEXT, note TEXT DEFAULT 'a;b'); -- comment; with a semicolon
        /* another; /* nested; */ one; */
        CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $body$
        BEGIN
          NEW.note := NEW.note || ';' || E'\\';';
          RETURN NEW;
        END;
        $body$;
        CREATE FUNCTION three() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 3; END;
        CREATE TRIGGER fill BEFORE INSERT ON a1 FOR EACH ROW EXECUTE FUNCTION fill();
        INSERT INTO a1 (id) VALUES ('x');`,
    })
    assert.deepEqual(await run(), ['a/001_one'])
    assert.deepEqual((await client.query('SELECT id, note, three() FROM a1')).rows, [
      { id: 'x', note: `a;b;';`, three: 3 },
    ])
  })

  test('what cannot run in a transaction is refused with advice', async (t) => {
    const { run } = await withMigrations(t, {
      '001_one': 'CREATE TABLE a1 (id TEXT);',
      '002_two': 'CREATE INDEX CONCURRENTLY a1_by_id ON a1 (id);',
    })
    await assert.rejects(run(), /002_two.*CREATE INDEX CONCURRENTLY.*Leave CONCURRENTLY out/)
  })

  const alone = '-- heddle: no-transaction\n'

  test('no-transaction: an index is made concurrently, and a failure is told until somebody has looked', async (t) => {
    const { client, run, driver, folder } = await withMigrations(t, {
      '001_rows': "CREATE TABLE rows (id INTEGER, name TEXT); INSERT INTO rows VALUES (1, 'a'), (1, 'a');",
      '002_index': `-- depends: a/001_rows\n${alone}-- Beside writers; see BEGIN.\nCREATE INDEX CONCURRENTLY by_name ON rows (name);`,
      '003_vacuum': `${alone}VACUUM rows`,
      '004_unique': `${alone}CREATE UNIQUE INDEX CONCURRENTLY by_id ON rows (id);`,
      '005_after': 'CREATE TABLE later (id INTEGER);',
    })
    await assert.rejects(run(), { code: 'MIGRATION_INVALID', message: /a\/004_unique failed.*by_id[\s\S]*INVALID/ })
    // Neither this one nor what comes after it runs before somebody has looked.
    await assert.rejects(run(), { code: 'MIGRATION_INVALID', message: /a\/004_unique is unfinished[\s\S]*DROP INDEX/ })
    const names = async () => (await client.query('SELECT id FROM _migrations ORDER BY id')).rows.map(({ id }) => id)
    assert.deepEqual(await names(), ['a/001_rows', 'a/002_index', 'a/003_vacuum', 'a/004_unique'])
    await client.query('DROP INDEX by_id; DELETE FROM rows')
    await settle(driver, [folder], 'a/004_unique', false, () => {})
    assert.deepEqual(await run(), ['a/004_unique', 'a/005_after'])
    assert.deepEqual(await run(), [])
  })

  test('no-transaction: a value of an enum is added in one migration and used in the next', async (t) => {
    const { client, run } = await withMigrations(t, {
      '001_mood': "CREATE TYPE mood AS ENUM ('ok'); CREATE TABLE moods (mood mood);",
      '002_sad': `${alone}ALTER TYPE mood ADD VALUE 'sad'`,
      '003_used': "INSERT INTO moods VALUES ('sad'); ALTER TABLE moods ALTER mood SET DEFAULT 'sad';",
      '004_set': `${alone}SET ROLE pg_monitor`,
      '005_after': 'CREATE TABLE later (id INTEGER);',
    })
    assert.equal((await run()).length, 5)
    assert.deepEqual((await client.query('SELECT mood FROM moods')).rows, [{ mood: 'sad' }])
  })

  test('no-transaction: who is killed in the middle leaves it unfinished, and who comes then waits for the server', async (t) => {
    const { client, database, run, driver, folder } = await withMigrations(t, {
      '001_rows': 'CREATE TABLE rows (id INTEGER);',
      '002_index': `${alone}CREATE INDEX CONCURRENTLY by_id ON rows (id)`,
    })
    await client.query('CREATE TABLE rows (id INTEGER)')
    await writeFiles(folder, { 'a/migrations/001_rows.sql': 'CREATE TABLE other (id INTEGER);' })
    // The index waits for this transaction.
    await client.query('BEGIN; INSERT INTO rows VALUES (1)')
    const options = { thread: { kind: 'primary' }, settings: postgresSettings(server, database) }
    const child = start(t, { tool: 'postgres', options }, folder)
    await once(child.stdout!, 'data')
    child.stdin!.write('go\n')
    const states =
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE query LIKE '%INDEX CONCURRENTLY by_id%' AND wait_event_type = 'Lock' AND datname = current_database() AND pid <> pg_backend_pid()"
    while ((await client.query(states)).rows[0].n === 0) {
      await new Promise((done) => setTimeout(done, 20))
      await client.query('SELECT pg_stat_clear_snapshot()')
    }
    child.kill('SIGKILL')
    await once(child, 'exit')
    const next = assert.rejects(run(), /a\/002_index is unfinished[\s\S]*INVALID[\s\S]*again a\/002_index/)
    const first = await Promise.race([next.then(() => 'told'), new Promise((done) => setTimeout(done, 300, 'waits'))])
    assert.equal(first, 'waits', 'the server still works on it')
    await client.query('COMMIT')
    await next
    assert.equal(
      (await client.query("SELECT indisvalid FROM pg_index WHERE indexrelid = 'by_id'::regclass")).rows.length,
      1,
    )
    await settle(driver, [folder], 'a/002_index', true, () => {})
    assert.deepEqual(await run(), [])
  })

  test('no-transaction: behind a transaction pooler it is refused before anything is recorded', async (t) => {
    const { client, database, folder } = await withMigrations(t, { '001_vacuum': `${alone}VACUUM` })
    const settings = { ...postgresSettings(server, database), rdbPooler: 'transaction' as const }
    const log: LogLine[] = []
    const db = postgresDb(t, server, database, { domainsDir: [folder], thread: { kind: 'primary' }, settings, log })
    await assert.rejects(db.boot(), /a\/001_vacuum runs without a transaction.*RDB_POOLER=none/)
    assert.equal((await client.query("SELECT to_regclass('_migrations') AS there")).rows[0].there, null)
  })

  test('what one migration sets is not set in the next', async (t) => {
    const { client, run } = await withMigrations(t, {
      '001_one': `CREATE SCHEMA other; SELECT set_config('search_path', 'other', false); CREATE TEMP TABLE mine (id TEXT);`,
      '002_two': `CREATE TABLE a2 (id TEXT); CREATE TEMP TABLE mine (id TEXT);`,
    })
    await run()
    assert.equal(
      (await client.query(`SELECT 1 FROM pg_tables WHERE schemaname = 'public' AND tablename = 'a2'`)).rowCount,
      1,
    )
  })

  test('a migration may take longer than a statement, and who waits for that of another process says so', async (t) => {
    const { folder, database } = await withMigrations(t, {
      '001_one': 'CREATE TABLE a1 (id TEXT); SELECT pg_sleep(0.5);',
    })
    const log: LogLine[] = []
    const [db, other] = [1, 2].map(() =>
      postgresDb(t, server, database, {
        thread: { kind: 'primary' },
        domainsDir: [folder],
        settings: { rdbStatementTimeoutMs: 100 },
        log,
      }),
    )
    await Promise.all([db!.boot(), other!.boot()])
    assert.deepEqual(await db!.query('SELECT id FROM a1'), [])
    assert.equal(log.filter(({ message }) => message.startsWith('Another process migrates')).length, 1)
  })

  test('who waits for another process that migrates for too long says so, and leaves nothing', async (t) => {
    const { client, run } = await withMigrations(t, { '001_one': 'CREATE TABLE a1 (id TEXT);' }, 200)
    await client.query(
      'CREATE TABLE _migrations (id TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at TEXT NOT NULL)',
    )
    await client.query('BEGIN; LOCK TABLE _migrations IN SHARE ROW EXCLUSIVE MODE')
    const error = await rejectsWith('timeout', run(), /Waited 200 ms for another process that migrates this database/)
    assert.match(error.message, /a\/001_one/)
    await client.query('ROLLBACK')
    assert.deepEqual(await run(), ['a/001_one'])
  })

  test('a server that is lost meanwhile is no fault of the migration: it can be tried again', async (t) => {
    const { client, run } = await withMigrations(t, {
      '001_one': 'CREATE TABLE a1 (id TEXT); SELECT pg_terminate_backend(pg_backend_pid());',
    })
    await rejectsWith('unavailable', run(), /a\/001_one/)
    assert.equal((await client.query(`SELECT 1 FROM pg_tables WHERE tablename = 'a1'`)).rowCount, 0)
  })
}
