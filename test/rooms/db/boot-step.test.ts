import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { openHistory } from '../../../src/history/history-file.ts'
import { folderOf } from '../../support/folder.ts'
import { spawnHeddle, startHeddle } from '../../support/heddle.ts'
import { fixture } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fixture('deployed')]

test('with DB_AUTO_MIGRATE=false replicas leave the database alone, and the boot step migrates it by dependency', async (t) => {
  // By name alone, alpha would come before what it refers to.
  const migrations = await folderOf(t, {
    'alpha/migrations/001_a.sql':
      '-- depends: beta/001_b\nCREATE TABLE a (id TEXT REFERENCES b); INSERT INTO a SELECT id FROM b;',
    'beta/migrations/001_b.sql': "CREATE TABLE b (id TEXT PRIMARY KEY); INSERT INTO b VALUES ('one');",
  })
  const domains = [...DOMAINS, migrations]
  const replica = await startHeddle(t, { domains, lanes: 1, env: { DB_AUTO_MIGRATE: 'false' } })
  const tables = async () => (await replica.json('/tables')).body.tables.map(({ name }: { name: string }) => name)
  const bootStep = async (autoMigrate: string) => {
    const env = { DB_AUTO_MIGRATE: autoMigrate, SQLITE_PATH: join(replica.directory, 'service.db') }
    const { child } = await spawnHeddle(t, { domains, env, args: ['--boot-tool', 'db'] })
    return (await once(child, 'exit'))[0]
  }
  assert.deepEqual(await tables(), [])
  assert.equal(await bootStep('false'), 0)
  assert.deepEqual(await tables(), [])
  assert.equal(await bootStep('true'), 0)
  assert.deepEqual(await tables(), ['a', 'b'])
})

test('what is misnamed among the migrations ends the start, but in development', async (t) => {
  const files = { 'a/migrations/001_a.sql': 'CREATE TABLE a (id TEXT);', 'a/migrations/2-b.sql': 'SELECT 1;' }
  const misnamed = await folderOf(t, files)
  const piped = await folderOf(t, { 'a/migrations/001_a.sql': files['a/migrations/001_a.sql'] })
  execFileSync('mkfifo', [join(piped, 'a/migrations/002_b.sql')])
  const whys = {
    [misnamed]: /2-b\.sql: a migration's file is named NNN_name\.sql/,
    [piped]: /002_b\.sql is not a file/,
  }
  for (const [folder, why] of Object.entries(whys)) {
    const { child, errors } = await spawnHeddle(t, { domains: [...DOMAINS, folder], lanes: 1 })
    assert.equal((await once(child, 'close'))[0], 78)
    assert.match(errors.join(''), why)
  }
  const { child, logs } = await spawnHeddle(t, { domains: [...DOMAINS, misnamed], lanes: 1, args: ['--watch'] })
  await until(() => logs.some(({ msg }) => /2-b\.sql: a migration's file is named/.test(msg)), 'it says so')
  await until(() => logs.some(({ msg }) => msg.startsWith('Serving on ')), 'it serves')
  assert.equal(child.exitCode, null)
})

test('npm run dev leaves a draft alone until its line is removed, and says so', async (t) => {
  const folder = await folderOf(t, { 'shop/migrations/001_shop.sql': 'CREATE TABLE shop (id TEXT);' })
  const { logs } = await spawnHeddle(t, { domains: [...DOMAINS, folder], lanes: 1, args: ['--watch'] })
  const said = (text: RegExp) => until(() => logs.some(({ msg }) => text.test(msg)), String(text))
  await said(/^Serving on /)
  const file = join(folder, 'shop/migrations/002_more.sql')
  await writeFile(file, '-- heddle: draft\nCREATE TABLE more (id TEXT);')
  await said(
    /^Migration shop\/002_more is a draft and is not applied: write it, and remove the line `-- heddle: draft` /,
  )
  await writeFile(file, 'CREATE TABLE more (id TEXT, note TEXT);')
  await said(/^Applied migration shop\/002_more$/)
})

test('a path that is no database, or that of a history, ends the start and is left as it is', async (t) => {
  const folder = await folderOf(t, { 'notes.txt': 'buy milk\n', 'folder/x': '' })
  openHistory(join(folder, 'history.db')).close()
  execFileSync('mkfifo', [join(folder, 'pipe')])
  const whys = {
    'notes.txt': /notes\.txt is not a database of SQLite/,
    folder: /folder is not a file/,
    pipe: /pipe is not a file/,
    'history.db': /history\.db is the file of a history/,
  }
  const history = readFileSync(join(folder, 'history.db'))
  for (const [name, why] of Object.entries(whys)) {
    const env = { SQLITE_PATH: join(folder, name) }
    const { child, errors } = await spawnHeddle(t, { domains: DOMAINS, lanes: 1, env })
    assert.equal((await once(child, 'close'))[0], 78, name)
    assert.match(errors.join(''), why)
  }
  assert.equal(readFileSync(join(folder, 'notes.txt'), 'utf8'), 'buy milk\n')
  assert.deepEqual(readFileSync(join(folder, 'history.db')), history)
})
