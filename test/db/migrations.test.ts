import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { HeddleError } from '../../src/errors/catalogue.ts'
import { migrate, pending } from '../../src/migrations/runner.ts'
import { Connection } from '../../src/tools/sqlite/connection.ts'
import { SqliteMigrations } from '../../src/tools/sqlite/migration-driver.ts'
import { createDb, type LogLine, temporaryFolder, writeFiles } from './fixture.ts'

async function withDomains(t: TestContext, files: Record<string, string>) {
  const root = await temporaryFolder(t)
  const folder = join(root, 'domains')
  const path = join(root, 'service.db')
  const add = (more: Record<string, string>) =>
    writeFiles(
      folder,
      Object.fromEntries(Object.entries(more).map(([id, sql]) => [id.replace('/', '/migrations/'), sql])),
    )
  await add(files)
  const driver = new SqliteMigrations(new Connection(path))
  t.after(() => driver.close())
  const database = new Database(path)
  t.after(() => database.close())
  const tables = () =>
    database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").pluck().all() as string[]
  const run = () => migrate(driver, [folder], () => {})
  return { root, folder, path, add, driver, database, tables, run }
}

async function refusal(work: Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejects(work, (thrown) => {
    assert.ok(thrown instanceof HeddleError)
    assert.equal(thrown.code, 'MIGRATION_INVALID')
    assert.match(thrown.message, message)
    return true
  })
}

test('migrations are applied once, by file number within a domain and by dependency across', async (t) => {
  const { run, database, tables } = await withDomains(t, {
    'alpha/001_first.sql': '-- depends: beta/010_last\nCREATE TABLE a1 (id TEXT REFERENCES b10 (id));',
    'alpha/002_second.sql': 'ALTER TABLE a1 ADD COLUMN x TEXT;',
    'beta/002_two.sql': 'CREATE TABLE b2 (id TEXT PRIMARY KEY);',
    'beta/010_last.sql':
      '-- A comment\n\n-- depends: gamma/001_base\n-- depends: beta/002_two\nCREATE TABLE b10 (id TEXT PRIMARY KEY);',
    'gamma/001_base.sql': 'CREATE TABLE g1 (id TEXT PRIMARY KEY);',
    'gamma/1000_thousand.sql': 'CREATE TABLE g1000 (id TEXT);',
    'gamma/999_before.sql': 'CREATE TABLE g999 (id TEXT);',
  })
  const order = [
    'beta/002_two',
    'gamma/001_base',
    'beta/010_last',
    'alpha/001_first',
    'alpha/002_second',
    'gamma/999_before',
    'gamma/1000_thousand',
  ]
  assert.deepEqual(await run(), order)
  assert.deepEqual(await run(), [])
  assert.deepEqual(tables(), ['_migrations', 'a1', 'b10', 'b2', 'g1', 'g1000', 'g999'])
  const rows = database.prepare('SELECT id, checksum, applied_at FROM _migrations ORDER BY rowid').all() as Record<
    string,
    string
  >[]
  assert.deepEqual(
    rows.map((row) => row.id),
    order,
  )
  for (const row of rows) {
    assert.match(row.checksum!, /^[0-9a-f]{64}$/)
    assert.match(row.applied_at!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  }
})

test('a circle is refused by name before anything is applied', async (t) => {
  const { run, tables } = await withDomains(t, {
    'a/001_one.sql': '-- depends: b/002_two\nCREATE TABLE a1 (id TEXT);',
    'b/001_one.sql': '-- depends: a/001_one\nCREATE TABLE b1 (id TEXT);',
    'b/002_two.sql': 'CREATE TABLE b2 (id TEXT);',
    'c/001_free.sql': 'CREATE TABLE c1 (id TEXT);',
  })
  await refusal(run(), /circle: a\/001_one → b\/002_two → b\/001_one → a\/001_one/)
  assert.deepEqual(tables(), [])
})

test('a dependency that does not exist is refused by name', async (t) => {
  const { run, tables } = await withDomains(t, {
    'a/001_one.sql': '-- depends: b/007_gone\nCREATE TABLE a1 (id TEXT);',
  })
  await refusal(run(), /a\/001_one depends on b\/007_gone/)
  assert.deepEqual(tables(), [])
})

test('a file with another name, a malformed header and one id in two folders are refused', async (t) => {
  const named = await withDomains(t, { 'a/create.sql': 'SELECT 1;' })
  await refusal(named.run(), /create\.sql.*NNN_name\.sql/)
  const header = await withDomains(t, { 'a/001_one.sql': '-- depends: b\nSELECT 1;' })
  await refusal(header.run(), /001_one\.sql.*depends: b/)
  const first = await withDomains(t, { 'a/001_one.sql': 'SELECT 1;' })
  const second = await withDomains(t, { 'a/001_one.sql': 'SELECT 1;' })
  await refusal(
    migrate(first.driver, [first.folder, second.folder], () => {}),
    /Two files are the migration a\/001_one/,
  )
})

test('an applied file whose text has changed is refused by name; other line ends are no change', async (t) => {
  const { run, add, tables } = await withDomains(t, { 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);\n' })
  await run()
  await add({ 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);\r\n' })
  assert.deepEqual(await run(), [])
  await add({
    'a/001_one.sql': 'CREATE TABLE a1 (id TEXT); -- changed\n',
    'a/002_two.sql': 'CREATE TABLE a2 (id TEXT);',
  })
  await refusal(run(), /a\/001_one was changed after it was applied/)
  assert.deepEqual(tables(), ['_migrations', 'a1'])
})

test('a migration that fails half-way leaves nothing of itself, and those before it stay', async (t) => {
  const { run, add, tables } = await withDomains(t, {
    'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);',
    'a/002_two.sql': 'CREATE TABLE a2 (id TEXT); INSERT INTO a1 VALUES (1); INSERT INTO no_such_table VALUES (1);',
    'a/003_three.sql': 'CREATE TABLE a3 (id TEXT);',
  })
  await refusal(run(), /a\/002_two failed and was rolled back: no such table: no_such_table/)
  assert.deepEqual(tables(), ['_migrations', 'a1'])
  await add({ 'a/002_two.sql': 'CREATE TABLE a2 (id TEXT);' })
  assert.deepEqual(await run(), ['a/002_two', 'a/003_three'])
})

test('statements run verbatim: semicolons in strings, comments and triggers are no ends', async (t) => {
  const { run, database } = await withDomains(t, {
    'a/001_one.sql': `
      CREATE TABLE a1 (id TEXT, note TEXT DEFAULT 'a;b'); -- comment; with a semicolon
      /* another; one */
      CREATE TRIGGER fill AFTER INSERT ON a1 BEGIN
        UPDATE a1 SET note = note || CASE WHEN NEW.id = 'x' THEN ';' ELSE '' END WHERE id = NEW.id;
        UPDATE a1 SET note = note || '!' WHERE id = NEW.id;
      END;
      INSERT INTO a1 (id) VALUES ('x');`,
  })
  assert.deepEqual(await run(), ['a/001_one'])
  assert.deepEqual(database.prepare('SELECT id, note FROM a1').all(), [{ id: 'x', note: 'a;b;!' }])
})

test('a migration that would end its transaction itself is refused and leaves nothing', async (t) => {
  const { run, tables } = await withDomains(t, {
    'a/001_one.sql': 'CREATE TABLE a1 (id TEXT); COMMIT; CREATE TABLE a2 (id TEXT);',
  })
  await refusal(run(), /a\/001_one.*COMMIT/)
  assert.deepEqual(tables(), [])
})

test('pending names what would be applied and changes nothing', async (t) => {
  const { run, driver, folder, add, tables } = await withDomains(t, { 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);' })
  const ids = async () => (await pending(driver, [folder])).map((migration) => migration.id)
  assert.deepEqual(await ids(), ['a/001_one'])
  assert.deepEqual(tables(), [])
  await run()
  await add({ 'a/002_two.sql': 'CREATE TABLE a2 (id TEXT);' })
  assert.deepEqual(await ids(), ['a/002_two'])
})

test('several domains folders are scanned, and those that do not exist hold nothing', async (t) => {
  const one = await withDomains(t, { 'a/001_one.sql': '-- depends: b/001_one\nCREATE TABLE a1 (id TEXT);' })
  const two = await withDomains(t, { 'b/001_one.sql': 'CREATE TABLE b1 (id TEXT);' })
  const folders = [one.folder, join(one.root, 'none'), two.folder]
  assert.deepEqual(await migrate(one.driver, folders, () => {}), ['b/001_one', 'a/001_one'])
})

test('booting the tool migrates in the primary only, and not when told otherwise', async (t) => {
  const { folder, path, tables } = await withDomains(t, { 'a/001_one.sql': 'CREATE TABLE a1 (id TEXT);' })
  const options = { sqlitePath: path, domainsDir: [folder] }
  await createDb(t, { ...options, thread: { kind: 'lane', index: 0 } })
  const log: LogLine[] = []
  await createDb(t, { ...options, dbAutoMigrate: false, log })
  assert.deepEqual(tables(), [])
  assert.deepEqual(log.at(-1)?.fields, { migrations: ['a/001_one'] })
  const db = await createDb(t, options)
  assert.deepEqual(tables(), ['_migrations', 'a1'])
  assert.equal((await db.execute(`INSERT INTO a1 VALUES ('x')`)).rowCount, 1)
})

test('of two processes that migrate at once one waits, and each migration is applied once', async (t) => {
  const { folder, path, database, add } = await withDomains(t, {})
  const slow =
    'WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 200000) INSERT INTO log SELECT'
  await add({ 'a/001_log.sql': 'CREATE TABLE log (entry TEXT);' })
  for (let n = 2; n <= 6; n++) await add({ [`a/00${n}_step.sql`]: `${slow} '${n}:' || max(n) FROM c;` })
  const processes = [start(t, path, folder), start(t, path, folder)]
  const lines = processes.map((child) => createInterface({ input: child.stdout! })[Symbol.asyncIterator]())
  for (const line of lines) assert.equal((await line.next()).value, 'ready')
  for (const child of processes) child.stdin!.write('go\n')
  const applied = await Promise.all(lines.map(async (line) => JSON.parse((await line.next()).value) as string[]))
  const ids = ['a/001_log', ...[2, 3, 4, 5, 6].map((n) => `a/00${n}_step`)]
  assert.deepEqual([...applied[0]!, ...applied[1]!].sort(), ids)
  assert.deepEqual(
    database.prepare('SELECT entry FROM log').pluck().all(),
    [2, 3, 4, 5, 6].map((n) => `${n}:200000`),
  )
})

function start(t: TestContext, path: string, folder: string): ChildProcess {
  const script = fileURLToPath(new URL('./migrate-process.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script, path, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill()
    await once(child, 'exit')
  })
  return child
}
