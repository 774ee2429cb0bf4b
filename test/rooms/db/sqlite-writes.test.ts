import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { MAX_WAITING } from '../../../src/stores/sql/database.ts'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import { toDbError } from '../../../src/tools/sqlite/failure.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { fixtureRuntime } from '../../support/tool-runtime.ts'
import { createDb } from './fixture.ts'
import { rejectsWith } from './rejects-with.ts'

async function withItems(t: TestContext) {
  const path = join(temporaryFolder(t), 'service.db')
  const db = await createDb(t, { sqlitePath: path })
  await db.execute('CREATE TABLE items (id TEXT PRIMARY KEY, n INTEGER)')
  const insert = (id: string) => db.execute('INSERT INTO items (id, n) VALUES ($1, 1)', [id])
  const ids = async () => (await db.query<{ id: string }>('SELECT id FROM items ORDER BY id')).map((row) => row.id)
  const other = new Database(path, { timeout: 0 })
  t.after(() => other.close())
  return { db, path, insert, ids, other }
}

test('a column without a name of its own has the placeholder for a name', async (t) => {
  const { db } = await withItems(t)
  assert.deepEqual(await db.query('SELECT $2, $1', ['one', 'two']), [{ $2: 'two', $1: 'one' }])
})

test('a write is answered only when another connection can see it', async (t) => {
  const { insert, other } = await withItems(t)
  const count = other.prepare('SELECT count(*) FROM items').pluck()
  const seen = await Promise.all(['a', 'b', 'c'].map((id) => insert(id).then(() => count.get())))
  assert.deepEqual(seen, [3, 3, 3])
})

test('a full database rejects with unavailable, keeps what it had, and takes writes again once there is room', async (t) => {
  const { db, insert, ids } = await withItems(t)
  await insert('before')
  const pages = await db.queryOne<{ page_count: number }>('PRAGMA page_count')
  await db.query(`PRAGMA max_page_count = ${pages!.page_count + 2}`)
  const big = (id: string) => db.execute('INSERT INTO items (id) VALUES ($1)', [id + 'x'.repeat(200_000)])
  const results = await Promise.allSettled([insert('small-1'), big('big-1'), big('big-2'), insert('small-2')])
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? 'ok' : result.reason.kind)),
    ['ok', 'unavailable', 'unavailable', 'ok'],
  )
  assert.deepEqual(await ids(), ['before', 'small-1', 'small-2'])
  await db.query('PRAGMA max_page_count = 100000')
  await big('later')
})

test('statements that cannot run inside of a transaction run among others', async (t) => {
  const { db, insert, ids } = await withItems(t)
  await Promise.all([insert('a'), db.execute('VACUUM'), insert('b'), db.query('PRAGMA user_version = 7'), insert('c')])
  assert.deepEqual(await ids(), ['a', 'b', 'c'])
  assert.deepEqual(await db.queryOne('PRAGMA user_version'), { user_version: 7 })
})

test('a write may follow the statement that creates its table without an await', async (t) => {
  const db = await createDb(t)
  const results = await Promise.all([
    db.execute('CREATE TABLE fresh (id TEXT)'),
    db.execute(`INSERT INTO fresh VALUES ('a')`),
    db.query('SELECT id FROM fresh'),
  ])
  assert.deepEqual(results[2], [{ id: 'a' }])
})

test('more different statements than the cache holds all work', async (t) => {
  const { db } = await withItems(t)
  for (let n = 0; n < 600; n++) assert.deepEqual(await db.queryOne(`SELECT ${n} AS n`), { n })
  assert.deepEqual(await db.queryOne('SELECT 0 AS n'), { n: 0 })
})

test('a write waits, without blocking the loop, while another process has the file locked', async (t) => {
  const { insert, ids, other } = await withItems(t)
  other.exec('BEGIN IMMEDIATE')
  let settled = false
  const writes = Promise.all([insert('a'), insert('b')]).then(() => {
    settled = true
  })
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 1))
  assert.equal(settled, false)
  assert.deepEqual(await ids(), [], 'reads go on meanwhile')
  other.exec('COMMIT')
  await writes
  assert.deepEqual(await ids(), ['a', 'b'])
})

// Side by side, because each waits for the full deadline.
describe('deadlines', { concurrency: true }, () => {
  test('what waits for a lock that is never given up ends with timeout, and the next write works', async (t) => {
    const { db, insert, ids, other } = await withItems(t)
    other.exec('BEGIN IMMEDIATE')
    const transaction = db.transaction((tx) => tx.query('SELECT 1'))
    await Promise.all([rejectsWith('timeout', transaction, /locked/), rejectsWith('timeout', insert('a'), /locked/)])
    other.exec('ROLLBACK')
    await insert('b')
    assert.deepEqual(await ids(), ['b'])
  })

  test('a write through db inside of a transaction callback waits for itself and is told so', async (t) => {
    const { db, insert, ids } = await withItems(t)
    await db.transaction(async (tx) => {
      await tx.execute(`INSERT INTO items (id) VALUES ('inside')`)
      await Promise.all([
        rejectsWith('timeout', insert('outside'), /waits for itself.*tx/),
        rejectsWith(
          'timeout',
          db.transaction((inner) => inner.query('SELECT 1')),
          /waits for itself/,
        ),
      ])
    })
    assert.deepEqual(await ids(), ['inside'])
  })
})

test('the tx that the callback of a plugin gets is the instrumented one', async (t) => {
  const calls: string[] = []
  const instrument = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, key) {
        calls.push(String(key))
        return Reflect.get(object, key)
      },
    })
  const { host } = fixtureRuntime().runtime
  const db = await createDb(t, { instrument, host })
  const api = db.api({ name: 'shop.Sell', instance: undefined })
  assert.deepEqual(await api.transaction((tx) => tx.queryOne('SELECT 1 AS one')), { one: 1 })
  assert.deepEqual(calls, ['queryOne'])
  await db.transaction((tx) => tx.queryOne('SELECT 1 AS one'))
  assert.deepEqual(calls, ['queryOne'], 'the runtime itself')
})

test('healthCheck is false when the file is gone', async (t) => {
  const { db, path } = await withItems(t)
  await rename(path, `${path}.moved`)
  assert.equal(await db.healthCheck(), false)
})

test('writes beyond the bound of the queue are refused, and those within it are done', async (t) => {
  const { db, ids } = await withItems(t)
  const writes = Array.from({ length: MAX_WAITING + 1 }, () => db.execute('UPDATE items SET n = n + 1'))
  const results = await Promise.allSettled([...writes, db.execute(`INSERT INTO items (id) VALUES ('late')`)])
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, MAX_WAITING)
  for (const result of results.slice(-2))
    assert.equal(result.status === 'rejected' && result.reason.kind, 'unavailable')
  assert.deepEqual(await ids(), [])
})

test('stop commits what was issued, refuses what comes later, and can be called twice', async (t) => {
  const { db, insert, other } = await withItems(t)
  const last = insert('last')
  await db.stop()
  await last
  await db.stop()
  assert.equal(other.prepare('SELECT count(*) FROM items').pluck().get(), 1)
  await rejectsWith('unavailable', insert('late'))
  await rejectsWith('unavailable', db.query('SELECT 1'))
  await rejectsWith(
    'unavailable',
    db.transaction(async () => {}),
  )
})

test('a path that is no path of a file refuses to boot with unavailable', async (t) => {
  for (const path of ['', ':memory:', 'file:x?mode=memory']) {
    await rejectsWith('unavailable', createDb(t, { sqlitePath: path }))
  }
})

test('what is no file, or no database, refuses to boot for good', async (t) => {
  const folder = temporaryFolder(t)
  const text = join(folder, 'text.db')
  await writeFile(text, 'no database at all, '.repeat(500))
  await symlink(join(folder, 'circle.db'), join(folder, 'circle.db'))
  execFileSync('mkfifo', [join(folder, 'pipe.db')])
  const linux = ['/proc/none/a.db', '/proc/a.db', '/sys/none/a.db', '/sys/a.db', '/dev/full', '/dev/full/a.db']
  const places = [
    folder,
    text,
    join(text, 'a.db'),
    join(folder, 'circle.db'),
    join(folder, 'pipe.db'),
    join(folder, `${'n'.repeat(260)}.db`),
    join(folder, `${'n'.repeat(245)}.db`),
    join(folder, 'n'.repeat(260), 'a.db'),
    ...(process.platform === 'linux' ? linux : []),
  ]
  for (const sqlitePath of places) await refuses(t, sqlitePath)
})

const refuses = (t: TestContext, sqlitePath: string): Promise<void> =>
  assert.rejects(createDb(t, { sqlitePath }), { code: 'DATABASE_INVALID', message: /^SQLITE_PATH: / }, sqlitePath)

test('a read-only file system refuses to boot for good', async (t) => {
  const folder = temporaryFolder(t)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'none', folder])
  if (mounted.status !== 0) return t.skip('this user may not mount')
  try {
    for (const path of ['a.db', 'b/a.db']) await refuses(t, join(folder, path))
  } finally {
    spawnSync('umount', [folder])
  }
})

test('result codes of SQLite that cannot be provoked here have their kinds', () => {
  const kinds = ['SQLITE_IOERR_WRITE', 'SQLITE_READONLY', 'SQLITE_BUSY_SNAPSHOT', 'SQLITE_INTERRUPT', 'SQLITE_TOOBIG']
  assert.deepEqual(
    kinds.map((code) => toDbError(Object.assign(new Error('x'), { code })).kind),
    ['unavailable', 'unavailable', 'serialization', 'timeout', 'other'],
  )
})
