import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openHistory } from '../../../src/history/history-file.ts'
import { Database, HISTORY_APPLICATION_ID } from '../../../src/stores/sqlite/driver.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { LOADER } from '../../support/loader.ts'
import { until } from '../../support/until.ts'

const FILE = fileURLToPath(new URL('../../../src/history/history-file.ts', import.meta.url))

/** Another application's database, with what its last write has left in the log beside it. */
function foreignDatabase(path: string, setup: string): Buffer {
  const database = new Database(path)
  database.exec(
    `PRAGMA journal_mode = WAL; CREATE TABLE invoices (id TEXT); INSERT INTO invoices VALUES ('one'); ${setup}`,
  )
  database.close()
  return readFileSync(path)
}

test('a file that is not a history is left as it is, whatever its version', async (t) => {
  const folder = await folderOf(t, {})
  const files = {
    'version.db': foreignDatabase(join(folder, 'version.db'), 'PRAGMA user_version = 5'),
    'ours-by-version.db': foreignDatabase(join(folder, 'ours-by-version.db'), 'PRAGMA user_version = 3'),
    'none.db': foreignDatabase(join(folder, 'none.db'), ''),
    'other-id.db': foreignDatabase(join(folder, 'other-id.db'), 'PRAGMA application_id = 7'),
    'notes.txt': Buffer.from('buy milk\n'),
  }
  writeFileSync(join(folder, 'notes.txt'), files['notes.txt'])
  mkdirSync(join(folder, 'folder'))
  symlinkSync(join(folder, 'version.db'), join(folder, 'link.db'))
  for (const [name, bytes] of Object.entries(files)) {
    const path = join(folder, name)
    assert.throws(() => openHistory(path), new RegExp(`${name} is not a (?:history|database)`), name)
    assert.deepEqual(readFileSync(path), bytes, name)
    assert.equal(existsSync(`${path}-wal`), false, name)
  }
  assert.throws(() => openHistory(join(folder, 'link.db')), /version\.db is not a history/)
  assert.throws(() => openHistory(join(folder, 'folder')), /is not a file/)
})

test('a history of another version is made anew, also through a link, and is for its user alone', async (t) => {
  const folder = await folderOf(t, {})
  const path = join(folder, 'history.db')
  const first = openHistory(path)
  assert.equal(first.pragma('application_id', { simple: true }), HISTORY_APPLICATION_ID)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  first.exec('CREATE TABLE of_old (id TEXT); PRAGMA user_version = 99')
  first.close()
  symlinkSync(path, join(folder, 'link.db'))
  const second = openHistory(join(folder, 'link.db'))
  t.after(() => second.close())
  assert.equal(statSync(path).ino, statSync(join(folder, 'link.db')).ino)
  assert.equal(second.prepare("SELECT count(*) FROM sqlite_master WHERE name = 'of_old'").pluck().get(), 0)
})

test('processes that make one history at the same time all have it', async (t) => {
  const path = join(await folderOf(t, {}), 'history.db')
  const code = `require(${JSON.stringify(FILE)}).openHistory(${JSON.stringify(path)}).exec("INSERT INTO run VALUES (hex(randomblob(8)), 'a', 1, 1, '')")`
  const open = () => promisify(execFile)(process.execPath, [...LOADER, '-e', code])
  await Promise.all(Array.from({ length: 6 }, open))
  const database = openHistory(path)
  t.after(() => database.close())
  assert.equal(database.prepare('SELECT count(*) FROM run').pluck().get(), 6)
})

test('a service serves without a history where its file is somebody else’s, and says so', async (t) => {
  const path = join(await folderOf(t, {}), 'theirs.db')
  const bytes = foreignDatabase(path, 'PRAGMA user_version = 5')
  const heddle = await startHeddle(t, { lanes: 1, env: { HISTORY_ENABLED: 'true', HISTORY_PATH: path } })
  const why = /theirs\.db is not a history: it is left as it is/
  await until(() => heddle.logs.some(({ identity, msg }) => identity === 'history' && why.test(msg)), 'a warning')
  const { status, body } = await until(async () => {
    const answer = await heddle.json('/system/requests')
    return answer.status === 404 ? answer : null
  }, 'an answer without a history')
  assert.equal(status, 404)
  assert.match(body.error, why)
  assert.equal((await heddle.json('/system/health/ready')).status, 200)
  assert.deepEqual(readFileSync(path), bytes)
})
