import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Queryable, TransactionCompanion } from '../../../src/contracts/db.ts'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import SqliteDb from '../../../src/tools/sqlite/index.ts'
import { createDb, gate, runtimeFor } from '../../rooms/db/fixture.ts'
import { rejectsWith } from '../../rooms/db/rejects-with.ts'
import { temporaryFolder } from '../../support/folder.ts'

async function withItems(t: TestContext) {
  // A batch ends when it has taken its time, which on a busy machine is that of others.
  t.mock.method(performance, 'now', () => 0)
  const path = join(temporaryFolder(t), 'service.db')
  const db = await createDb(t, { sqlitePath: path })
  await db.execute('CREATE TABLE items (id TEXT PRIMARY KEY, n INTEGER)')
  const ids = async () => (await db.query<{ id: string }>('SELECT id FROM items ORDER BY id')).map((row) => row.id)
  /** One function, so that it is known after its first run. */
  const add = (...ids: string[]) =>
    db.transaction(async (tx) => {
      for (const id of ids) await tx.execute('INSERT INTO items (id) VALUES ($1)', [id])
      return ids.length
    })
  await add('known')
  return { db, path, ids, add }
}

const statuses = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.map((result) => (result.status === 'fulfilled' ? 'ok' : (result.reason.kind ?? result.reason.message)))

test('transactions and writes of one turn of the loop share one commit, and so do writes alone', async (t) => {
  const { db, path, ids, add } = await withItems(t)
  const logBytes = async () => (await stat(`${path}-wal`)).size
  let before = await logBytes()
  const numbers = Array.from({ length: 64 }, (_, n) => n)
  await Promise.all(
    numbers.map((n) =>
      n % 4 === 0 ? db.execute('INSERT INTO items (id) VALUES ($1)', [`${n}`]) : add(`${n}-a`, `${n}-b`),
    ),
  )
  const assertShared = async () => {
    const together = (await logBytes()) - before
    assert.ok(together > 0 && together < 20 * 4096, `64 commits together wrote ${together} bytes`)
    before += together
  }
  await assertShared()
  await Promise.all(numbers.map((n) => db.execute('INSERT INTO items (id) VALUES ($1)', [`alone-${n}`])))
  await assertShared()
  assert.equal((await ids()).length, 1 + 16 + 2 * 48 + 64)
})

test('transactions and writes that are issued together happen in the order in which they were issued', async (t) => {
  const { db } = await withItems(t)
  await Promise.all(
    Array.from({ length: 30 }, (_, n) => {
      const append = (to: Queryable) => to.execute(`UPDATE items SET id = id || $1`, [`,${n}`])
      return n % 3 === 0 ? append(db) : db.transaction(append)
    }),
  )
  const expected = `known${Array.from({ length: 30 }, (_, n) => `,${n}`).join('')}`
  assert.deepEqual(await db.query('SELECT id FROM items'), [{ id: expected }])
})

test('the first writes and transactions of a thread keep their order while its connections are being opened', async (t) => {
  const path = join(temporaryFolder(t), 'service.db')
  const append = (n: number) => (to: Queryable) => to.execute('UPDATE items SET id = id || $1', [`,${n}`])
  for (const isTransaction of [(n: number) => n % 3 === 1, (n: number) => n === 0, (n: number) => n === 20]) {
    const other = new Database(path)
    other.exec("DROP TABLE IF EXISTS items; CREATE TABLE items (id TEXT); INSERT INTO items VALUES ('')")
    // Nobody else can open the file, and the calls of several turns wait.
    other.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    const lane = new SqliteDb(runtimeFor({ sqlitePath: path, thread: { kind: 'lane', index: 0 } }))
    const calls: Promise<unknown>[] = []
    for (let n = 0; n < 40; n++) {
      calls.push(isTransaction(n) ? lane.transaction(append(n)) : append(n)(lane))
      if (n === 10) await new Promise((resolve) => setTimeout(resolve, 20))
      if (n === 15) other.close()
      if (n === 16) await new Promise((resolve) => setTimeout(resolve, 4))
      if (n > 16) await Promise.resolve()
    }
    await Promise.all(calls)
    assert.deepEqual(await lane.query('SELECT id FROM items'), [{ id: calls.map((_, n) => `,${n}`).join('') }])
    await lane.stop()
  }
})

test('a transaction that waits for something else does not hold those before it, and runs again by itself', async (t) => {
  const { db, ids, add } = await withItems(t)
  const goOn = gate()
  let runs = 0
  let refused: unknown
  const sometimesLate = (id: string, isLate: boolean) =>
    db.transaction(async (tx) => {
      await tx.execute('INSERT INTO items (id) VALUES ($1)', [id])
      if (!isLate) return
      runs++
      await goOn.opened
      await new Promise(setImmediate)
      await tx.query('SELECT 1').catch((thrown) => {
        refused = thrown
        throw thrown
      })
    })
  await sometimesLate('prompt', false)
  const before = add('before')
  const late = sometimesLate('late', true)
  const after = add('after')
  await before
  assert.deepEqual(await ids(), ['before', 'known', 'prompt'], 'it is answered while the late one waits')
  goOn.open()
  await Promise.all([late, after])
  assert.deepEqual(await ids(), ['after', 'before', 'known', 'late', 'prompt'])
  assert.equal(runs, 2)
  await rejectsWith('serialization', Promise.reject(refused), /begins again by itself/)

  runs = 0
  await Promise.all([add('x'), sometimesLate('late again', true), add('y')])
  assert.equal(runs, 1, 'it is known now, and no longer follows others')
})

/** So often that none of its next runs has a savepoint. */
async function trusted<T>(run: (n: number) => Promise<T>): Promise<void> {
  for (let n = 0; n < 20; n++) await run(n)
}

test('when one fails that has always succeeded, it fails alone, and the others run again', async (t) => {
  const { db, ids } = await withItems(t)
  let runs = 0
  const add = (id: string) =>
    db.transaction(async (tx) => {
      runs++
      await tx.execute('INSERT INTO items (id) VALUES ($1)', [id])
    })
  await trusted((n) => add(`earlier ${n}`))
  runs = 0
  const write = () => db.execute(`INSERT INTO items (id) VALUES ('written')`)
  const results = await Promise.allSettled([add('a'), write(), add('known'), add('b'), add('a'), add('c')])
  assert.deepEqual(statuses(results), ['ok', 'ok', 'unique_violation', 'ok', 'unique_violation', 'ok'])
  assert.deepEqual(
    (await ids()).filter((id) => !id.startsWith('earlier')),
    ['a', 'b', 'c', 'known', 'written'],
  )
  assert.equal(runs, 2 + 5, 'those before the first that has failed run twice, and it itself')

  runs = 0
  const again = await Promise.allSettled([add('d'), add('known'), add('e')])
  assert.deepEqual(statuses(again), ['ok', 'unique_violation', 'ok'])
  assert.equal(runs, 3, 'it is known now, and has a savepoint')
})

test('one that waits for something else among those without savepoints runs again by itself', async (t) => {
  const { db, ids } = await withItems(t)
  const add = (id: string, isLate = false) =>
    db.transaction(async (tx) => {
      await tx.execute('INSERT INTO items (id) VALUES ($1)', [id])
      if (isLate) await new Promise(setImmediate)
    })
  await trusted((n) => add(`earlier ${n}`))
  await Promise.all([add('a'), add('late', true), add('b')])
  assert.deepEqual(
    (await ids()).filter((id) => !id.startsWith('earlier')),
    ['a', 'b', 'known', 'late'],
  )
})

test('a function that was never seen runs once, whatever it waits for', async (t) => {
  const { db, ids, add } = await withItems(t)
  let runs = 0
  const first = add('a')
  const unknown = db.transaction(async (tx) => {
    runs++
    await new Promise(setImmediate)
    await tx.execute(`INSERT INTO items (id) VALUES ('unknown')`)
  })
  await Promise.all([first, unknown, add('b')])
  assert.equal(runs, 1)
  assert.deepEqual(await ids(), ['a', 'b', 'known', 'unknown'])
})

test('when a shared commit is refused, each runs again by itself', async (t) => {
  const { db, ids, add } = await withItems(t)
  await db.execute('CREATE TABLE links (item_id TEXT REFERENCES items (id))')
  const link = (to: string, isDeferred: boolean) =>
    db.transaction(async (tx) => {
      if (isDeferred) await tx.execute('PRAGMA defer_foreign_keys = ON')
      await tx.execute('INSERT INTO links (item_id) VALUES ($1)', [to])
    })
  await link('known', false)
  const results = await Promise.allSettled([add('a'), link('none', true), add('none'), link('none', false)])
  assert.deepEqual(statuses(results), ['ok', 'foreign_key_violation', 'ok', 'ok'])
  assert.deepEqual(await ids(), ['a', 'known', 'none'])
  assert.equal((await db.query('SELECT * FROM links')).length, 2)
})

test('no transaction mends the deferred constraint that another one has broken', async (t) => {
  const { db, add } = await withItems(t)
  await db.execute('CREATE TABLE links (item_id TEXT REFERENCES items (id) DEFERRABLE INITIALLY DEFERRED)')
  const link = (to: string) => db.transaction((tx) => tx.execute('INSERT INTO links (item_id) VALUES ($1)', [to]))
  await link('known')
  const write = (to: string) => db.execute('INSERT INTO links (item_id) VALUES ($1)', [to])
  const calls = [add('a'), link('late'), write('late'), write('known'), add('late'), write('late'), link('late')]
  const broken = 'foreign_key_violation'
  assert.deepEqual(statuses(await Promise.allSettled(calls)), ['ok', broken, broken, 'ok', 'ok', 'ok', 'ok'])
})

test('a statement that rolls back everything takes nothing of the others', async (t) => {
  const { db, ids, add } = await withItems(t)
  const rollBack = (id: string) =>
    db.transaction((tx) => tx.execute('INSERT OR ROLLBACK INTO items (id) VALUES ($1)', [id]))
  await rollBack('fresh')
  const write = () => db.execute(`INSERT INTO items (id) VALUES ('written')`)
  const refused = db.execute.bind(db, `INSERT OR ROLLBACK INTO items (id) VALUES ('known')`)
  const results = await Promise.allSettled([add('a'), write(), rollBack('known'), add('b'), refused(), add('c')])
  assert.deepEqual(statuses(results), ['ok', 'ok', 'unique_violation', 'ok', 'unique_violation', 'ok'])
  assert.deepEqual(await ids(), ['a', 'b', 'c', 'fresh', 'known', 'written'])
})

test('a transaction that meets a heavy statement among others runs in a process, and the others do not', async (t) => {
  const { db, ids, add } = await withItems(t)
  const count = (upTo: number) =>
    db.transaction(async (tx) => {
      await tx.execute('INSERT INTO items (id) VALUES ($1)', [`up to ${upTo}`])
      if (upTo === 0) return 0
      const numbers = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)'
      return (await tx.queryOne<{ n: number }>(`${numbers} SELECT count(*) AS n FROM n`, [upTo]))!.n
    })
  await count(0)
  assert.deepEqual(await Promise.all([add('a'), count(7), add('b')]), [1, 7, 1])
  assert.deepEqual(await ids(), ['a', 'b', 'known', 'up to 0', 'up to 7'])
})

test('a companion adds its last statements to each transaction, and hears how it ended', async (t) => {
  const { db, ids, add } = await withItems(t)
  const heard: string[] = []
  const accompany = (): TransactionCompanion => {
    const companion: TransactionCompanion & { last: string | null } = {
      last: null,
      own: null,
      extend(tx) {
        return Object.assign(tx, {
          keep: (id: string) => {
            companion.last = id
          },
        })
      },
      get hasLastStatements() {
        return companion.last !== null
      },
      lastStatements: (others = []) =>
        [companion, ...(others as (typeof companion)[])].map(({ last }) => ({
          sql: 'INSERT INTO items (id) VALUES ($1)',
          params: [`last ${last}`],
        })),
      committed: () => heard.push(`committed ${companion.last}`),
      rolledBack: () => heard.push(`rolled back ${companion.last}`),
      unknown: () => heard.push(`unknown ${companion.last}`),
    }
    return companion
  }
  const keeping = (id: string) =>
    db.transaction(async (tx) => {
      await tx.execute('INSERT INTO items (id) VALUES ($1)', [id])
      ;(tx as Queryable & { keep(id: string): void }).keep(id)
      if (id === 'thrown') throw new Error('no')
    }, accompany)
  await keeping('first')
  await add('last taken')
  heard.length = 0
  const results = await Promise.allSettled(['a', 'thrown', 'taken', 'b'].map(keeping))
  assert.deepEqual(statuses(results), ['ok', 'no', 'unique_violation', 'ok'])
  assert.deepEqual(await ids(), ['a', 'b', 'first', 'known', 'last a', 'last b', 'last first', 'last taken'])
  // Where a last statement fails, each runs again by itself.
  assert.deepEqual([...new Set(heard)].sort(), [
    'committed a',
    'committed b',
    'rolled back a',
    'rolled back b',
    'rolled back taken',
    'rolled back thrown',
  ])
  assert.deepEqual(heard.filter((each) => each.startsWith('committed')).sort(), ['committed a', 'committed b'])
})

test('a run that was given up stores nothing when its function comes to its end', async (t) => {
  const { db, ids, add } = await withItems(t)
  let made = 0
  const accompany = (): TransactionCompanion => {
    const number = made++
    return {
      own: null,
      extend: (tx) => tx,
      hasLastStatements: true,
      lastStatements: () => [{ sql: 'INSERT INTO items (id) VALUES ($1)', params: [`last of run ${number}`] }],
      committed: () => {},
      rolledBack: () => {},
      unknown: () => {},
    }
  }
  const first = gate()
  const sometimesLate = (waitsFor: Promise<void> | null) =>
    db.transaction(async () => {
      if (waitsFor !== null) await waitsFor
    }, accompany)
  await sometimesLate(null)
  const before = add('before')
  const late = sometimesLate(first.opened)
  await before
  first.open()
  await late
  assert.equal(made, 3)
  // Run 1 followed another one, was given up, and ended when run 2 did.
  assert.deepEqual(await ids(), ['before', 'known', 'last of run 0', 'last of run 2'])
})

test('a companion that cannot be made fails its transaction alone', async (t) => {
  const { db, ids, add } = await withItems(t)
  const first = add('a')
  const fails = db.transaction(
    async () => {},
    () => {
      throw new Error('no companion')
    },
  )
  assert.deepEqual(statuses(await Promise.allSettled([first, fails, add('b')])), ['ok', 'no companion', 'ok'])
  assert.deepEqual(await ids(), ['a', 'b', 'known'])
})
