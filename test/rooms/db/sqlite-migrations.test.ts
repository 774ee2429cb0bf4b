import assert from 'node:assert/strict'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { migrate, settle } from '../../../src/stores/migrations/runner.ts'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { SqliteConnection } from '../../../src/tools/sqlite/connection.ts'
import { SqliteMigrations } from '../../../src/tools/sqlite/migration-driver.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { createDb, writeFiles } from './fixture.ts'
import { runMigrationSuite, start } from './migration-suite.ts'
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
  { missingTable: /no such table: no_such_table/, alone: () => 'VACUUM' },
)

test('no-transaction: a failure has left nothing; who is killed in the middle leaves it unfinished', async (t) => {
  const root = temporaryFolder(t)
  const path = join(root, 'service.db')
  const folder = join(root, 'domains')
  const alone = '-- heddle: no-transaction\n'
  const ENDLESS = 'WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c'
  await writeFiles(folder, {
    'a/migrations/001_a.sql': `${alone}VACUUM`,
    'a/migrations/002_b.sql': `${alone}REINDEX nothing`,
  })
  const driver = new SqliteMigrations(new SqliteConnection(path), 1000)
  t.after(() => driver.close())
  const run = () => migrate(driver, [folder], () => {})
  const ids = async () => [...(await driver.applied()).keys()]
  await assert.rejects(run(), { code: 'MIGRATION_INVALID', message: /a\/002_b failed/ })
  assert.deepEqual(await ids(), ['a/001_a'])
  await writeFiles(folder, { 'a/migrations/002_b.sql': `${alone}${ENDLESS}` })
  const options = { sqlitePath: path }
  const child = start(t, { tool: 'sqlite', options }, folder)
  await once(child.stdout!, 'data')
  child.stdin!.write('go\n')
  while ((await ids()).length === 1) await new Promise((done) => setTimeout(done, 20))
  await assert.rejects(run(), { kind: 'timeout', message: /another process that migrates/ })
  child.kill('SIGKILL')
  await once(child, 'exit')
  await assert.rejects(run(), { code: 'MIGRATION_INVALID', message: /a\/002_b is unfinished/ })
  await settle(driver, [folder], 'a/002_b', false, () => {})
  await writeFiles(folder, { 'a/migrations/002_b.sql': `${alone}VACUUM` })
  assert.deepEqual(await run(), ['a/002_b'])
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
