import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { threadId } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { temporaryFolder } from '../../support/folder.ts'
import { createDb, gate } from './fixture.ts'
import type { WriterResult, WriterTask } from './writer-thread.ts'

async function withThreads(t: TestContext) {
  const sqlitePath = join(temporaryFolder(t), 'service.db')
  const lockMemory = new SharedArrayBuffer(64)
  const db = await createDb(t, { sqlitePath, lockMemory })
  await db.execute('CREATE TABLE items (id TEXT PRIMARY KEY)')
  await db.execute('CREATE TABLE counter (n INTEGER)')
  await db.execute('INSERT INTO counter VALUES (0)')
  const pool = new Piscina<WriterTask, WriterResult>({
    filename: new URL('./writer-thread.ts', import.meta.url).href,
    minThreads: 0,
    maxThreads: 2,
    concurrentTasksPerWorker: 1,
    atomics: 'disabled',
  })
  pool.on('error', () => {})
  t.after(() => pool.destroy())
  const task = { sqlitePath, lockMemory, lane: 0, writes: 0, inFlight: 0, transactions: 0 }
  const count = async () => (await db.queryOne<{ n: number }>('SELECT count(*) AS n FROM items'))?.n
  return { db, lockMemory, pool, task, count }
}

test('two threads that write and count at once lose nothing and do not starve each other', async (t) => {
  const { db, pool, task, count } = await withThreads(t)
  const work = { writes: 100, inFlight: 16, transactions: 100 }
  const results = await Promise.all([0, 1].map((lane) => pool.run({ ...task, ...work, lane })))
  assert.equal(await count(), 2 * 16 * 100)
  assert.deepEqual(await db.queryOne('SELECT n FROM counter'), { n: 200 })
  for (const { worstMs } of results) assert.ok(worstMs < 2500, `one call took ${worstMs} ms`)
})

test('a thread waits for a transaction of another without blocking, and goes on at its end', async (t) => {
  const { db, lockMemory, pool, task, count } = await withThreads(t)
  const inside = gate()
  const goOn = gate()
  const transaction = db.transaction(async (tx) => {
    await tx.execute(`INSERT INTO items VALUES ('mine')`)
    inside.open()
    await goOn.opened
  })
  await inside.opened
  let done = false
  const other = pool.run({ ...task, writes: 1, inFlight: 1 }).then(() => {
    done = true
  })
  // Longer than the lease: the transaction keeps renewing it.
  await new Promise((resolve) => setTimeout(resolve, 800))
  assert.equal(done, false)
  assert.equal(new Int32Array(lockMemory)[0], threadId + 1, 'the lock is still this thread’s')
  assert.equal(await count(), 0)
  goOn.open()
  await Promise.all([transaction, other])
  assert.equal(await count(), 2)
})

test('the lock of a thread that died inside of a transaction is taken back, and its writes are gone', async (t) => {
  const { db, lockMemory, pool, task, count } = await withThreads(t)
  await assert.rejects(pool.run({ ...task, die: true }))
  assert.notEqual(new Int32Array(lockMemory)[0], 0, 'the dead thread still has the lock')
  const startMs = performance.now()
  await db.execute(`INSERT INTO items VALUES ('alive')`)
  assert.ok(performance.now() - startMs < 3000)
  assert.equal(await count(), 1)
  assert.equal(new Int32Array(lockMemory)[0], 0)
})
