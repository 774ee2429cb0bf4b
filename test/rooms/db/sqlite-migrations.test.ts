import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { migrate } from '../../../src/stores/migrations/runner.ts'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { SqliteConnection } from '../../../src/tools/sqlite/connection.ts'
import { SqliteMigrations } from '../../../src/tools/sqlite/migration-driver.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { createDb, writeFiles } from './fixture.ts'
import { runMigrationSuite } from './migration-suite.ts'
import { rejectsWith } from './rejects-with.ts'

runMigrationSuite(
  'SQLite',
  async (t) => {
    const sqlitePath = join(temporaryFolder(t), 'service.db')
    const driver = new SqliteMigrations(new SqliteConnection(sqlitePath))
    t.after(() => driver.close())
    const database = new Database(sqlitePath)
    t.after(() => database.close())
    return {
      driver,
      query: async (sql) => database.prepare(sql).all() as Record<string, unknown>[],
      tables: async () =>
        database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").pluck().all() as string[],
      boot: (options) => createDb(t, { ...options, sqlitePath }),
      address: { tool: 'sqlite', options: { sqlitePath } },
    }
  },
  { missingTable: /no such table: no_such_table/ },
)

test('no-transaction: VACUUM runs, and a failure is recorded', async (t) => {
  const root = temporaryFolder(t)
  const alone = '-- heddle: no-transaction\n'
  await writeFiles(root, {
    'domains/a/migrations/001_a.sql': `${alone}VACUUM`,
    'domains/a/migrations/002_b.sql': `${alone}REINDEX nothing`,
  })
  const driver = new SqliteMigrations(new SqliteConnection(join(root, 'service.db')))
  t.after(() => driver.close())
  const run = () => migrate(driver, [join(root, 'domains')], () => {})
  await assert.rejects(run(), { code: 'MIGRATION_INVALID', message: /a\/002_b.*failed/ })
  assert.deepEqual([...(await driver.applied()).keys()], ['a/001_a', 'a/002_b'])
  await assert.rejects(run(), { code: 'MIGRATION_INVALID', message: /a\/002_b was begun/ })
})

test('statements run verbatim: semicolons in strings, comments and triggers are no ends', async (t) => {
  const root = temporaryFolder(t)
  await writeFiles(root, {
    'domains/a/migrations/001_one.sql': `
      CREATE TABLE a1 (id TEXT, note TEXT DEFAULT 'a;b'); -- comment; with a semicolon
      /* another; one */
      CREATE TRIGGER fill AFTER INSERT ON a1 BEGIN
        UPDATE a1 SET note = note || CASE WHEN NEW.id = 'x' THEN ';' ELSE '' END WHERE id = NEW.id;
        UPDATE a1 SET note = note || '!' WHERE id = NEW.id;
      END;
      INSERT INTO a1 (id) VALUES ('x');`,
  })
  const path = join(root, 'service.db')
  const driver = new SqliteMigrations(new SqliteConnection(path))
  t.after(() => driver.close())
  assert.deepEqual(await migrate(driver, [join(root, 'domains')], () => {}), ['a/001_one'])
  const database = new Database(path)
  t.after(() => database.close())
  assert.deepEqual(database.prepare('SELECT id, note FROM a1').all(), [{ id: 'x', note: 'a;b;!' }])
})

test('a disk that is full is not the fault of the migration', async (t) => {
  const root = temporaryFolder(t)
  await writeFiles(root, {
    'domains/a/migrations/001_one.sql': 'CREATE TABLE a1 (note TEXT); INSERT INTO a1 VALUES (hex(randomblob(100000)));',
  })
  const connection = new SqliteConnection(join(root, 'service.db'))
  const driver = new SqliteMigrations(connection)
  t.after(() => driver.close())
  connection.script('PRAGMA max_page_count = 8')
  await rejectsWith(
    'unavailable',
    migrate(driver, [join(root, 'domains')], () => {}),
    /a\/001_one failed .* disk is full/,
  )
  connection.script('PRAGMA max_page_count = 1000')
  assert.deepEqual(await migrate(driver, [join(root, 'domains')], () => {}), ['a/001_one'])
})
