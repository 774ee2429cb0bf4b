import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { run as runProgram } from '../../support/command.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'

const HEDDLE = fileURLToPath(new URL('../../../src/heddle.cjs', import.meta.url))

/** A project with two migrations and a seed, and the command in it. */
async function project(t: TestContext) {
  const root = await folderOf(t, {
    'domains/shop/migrations/001_items.sql': 'CREATE TABLE items (id TEXT PRIMARY KEY);',
    'domains/shop/migrations/002_more.sql': 'CREATE TABLE more (id TEXT);',
    'domains/shop/migrations/002_more.down.sql': 'DROP TABLE more;',
    'domains/shop/seeds/items.sql': "INSERT INTO items (id) VALUES ('loom') ON CONFLICT DO NOTHING;",
  })
  const env = { PATH: process.env.PATH, DOMAINS_DIR: join(root, 'domains'), SQLITE_PATH: join(root, 'test.db') }
  const run = (args: string, more: Record<string, string> = {}) =>
    runProgram(process.execPath, [HEDDLE, ...args.split(' ')], root, { ...env, ...more })
  return { root, run }
}

test('the command says, applies, takes back, seeds and begins anew', async (t) => {
  const { run, root } = await project(t)
  const before = await run('migrate status')
  assert.equal(before.code, 1)
  assert.match(before.output, /shop\/001_items +pending\n/)
  assert.equal((await run('migrate up')).code, 0)
  const after = await run('migrate status')
  assert.deepEqual([after.code, after.output.match(/applied/g)?.length], [0, 2])
  assert.match((await run('migrate down')).output, /Took back migration shop\/002_more/)
  const stuck = await run('migrate down')
  assert.equal(stuck.code, 1)
  assert.match(stuck.output, /shop\/001_items cannot be taken back: write /)
  assert.match((await run('migrate reset')).output, /Applied migration shop\/002_more\n.*Ran seed shop\/items/s)
  assert.match((await run('migrate seed')).output, /Ran seed shop\/items/)
  assert.match((await run('migrate reset', { NODE_ENV: 'production' })).output, /not with NODE_ENV=production/)
  const broken = join(root, 'domains/shop/migrations/003_broken.sql')
  await writeFile(broken, 'CREATE TABLE third (id TEXT);\n\nINSERT INTO forth (id)\n  VALUES (1);')
  const failed = await run('migrate up')
  assert.equal(failed.code, 1)
  assert.match(failed.output, /Migration shop\/003_broken failed and was rolled back: no such table: forth in line 3/)
  assert.match(
    failed.output,
    /\n {2}\S*003_broken\.sql:3:13\n {4}3 \| INSERT INTO forth \(id\)\n +\^\n {2}statement: INSERT INTO forth \(id\) VALUES \(1\)\n {2}Fix: /,
  )
  const unknown = await run('migrate sideways')
  assert.equal(unknown.code, 2)
  assert.match(unknown.output, /There is no command sideways/)
})

test('a database in which nothing was ever applied is somebody else’s, and is not reset', async (t) => {
  const { run, root } = await project(t)
  const theirs = new Database(join(root, 'test.db'))
  theirs.exec("CREATE TABLE invoices (id TEXT); INSERT INTO invoices VALUES ('one')")
  const refused = await run('migrate reset')
  assert.equal(refused.code, 1)
  assert.match(refused.output, /the table invoices is somebody else's/)
  assert.equal(theirs.prepare('SELECT id FROM invoices').pluck().get(), 'one')
  theirs.close()
})

test('a reset is refused while a process works on the database, whose own tables would go, too', async (t) => {
  const heddle = await startHeddle(t, { lanes: 1 })
  const { run } = await project(t)
  const env = { SQLITE_PATH: join(heddle.directory, 'service.db') }
  const refused = await run('migrate reset', env)
  assert.equal(refused.code, 1)
  assert.match(
    refused.output,
    /another process has the database file open: stop it \(npm run dev, too\), reset, and start/,
  )
  const user = { email: 'ada@example.com', name: 'Ada', password: 'correct horse battery' }
  const { status } = await heddle.post('/users', user)
  assert.equal(status, 201, 'it goes on')
  await heddle.stop()
  assert.equal((await run('migrate reset', env)).code, 0)
})

test('a migration that was changed is taken back and applied anew, when none that is applied comes after it', async (t) => {
  const { run, root } = await project(t)
  await run('migrate up')
  const second = join(root, 'domains/shop/migrations/002_more.sql')
  await writeFile(second, 'CREATE TABLE more (id TEXT, note TEXT);')
  assert.match((await run('migrate up')).output, /002_more was changed .*npm run migrate -- redo shop\/002_more/s)
  const redone = await run('migrate redo')
  assert.equal(redone.code, 0, redone.output)
  assert.match(redone.output, /Took back migration shop\/002_more\n.*Applied migration shop\/002_more/s)
  assert.equal((await run('migrate status')).code, 0)
  const first = await run('migrate redo shop/001_items')
  assert.match(first.output, /shop\/002_more is applied and comes after shop\/001_items: take that one back first/)
  assert.match((await run('migrate redo shop/009_none')).output, /shop\/009_none is not applied/)
  assert.match((await run('migrate redo', { NODE_ENV: 'production' })).output, /not with NODE_ENV=production/)
})

test('the types of the tables are written, and compared with the migrations', async (t) => {
  const { run } = await project(t)
  assert.equal((await run('db types --check')).code, 1)
  assert.match((await run('db types')).output, /domains\/db-types\.ts is written/)
  const current = await run('db types --check')
  assert.deepEqual([current.code, /is up to date/.test(current.output)], [0, true])
  assert.equal((await run('db types --out other.ts --check')).code, 1)
  assert.equal((await run('db sorts')).code, 2)
})
