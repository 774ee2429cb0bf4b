import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type SqliteDb from '../../../src/tools/sqlite/index.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import { createDb, gate } from './fixture.ts'
import { rejectsWith } from './rejects-with.ts'

const INSERT = 'INSERT INTO kept (id) VALUES ($1)'

/** @returns puts it back */
type Loss = (path: string) => () => void

const moved =
  (nameOf: (path: string) => string): Loss =>
  (path) => {
    const name = nameOf(path)
    renameSync(name, `${name}.old`)
    return () => renameSync(`${name}.old`, name)
  }

const LOSSES: Record<string, Loss> = {
  'the file is moved away': moved((path) => path),
  'its folder is moved away': moved(dirname),
  'its log is moved away': moved((path) => `${path}-wal`),
  'its index is moved away': moved((path) => `${path}-shm`),
  'a copy takes its place': (path) => {
    copyFileSync(path, `${path}.copy`)
    renameSync(path, `${path}.old`)
    renameSync(`${path}.copy`, path)
    return () => renameSync(`${path}.old`, path)
  },
}

const WRITES: Record<string, (db: SqliteDb, id: string) => Promise<unknown>> = {
  'a statement': (db, id) => db.execute(INSERT, [id]),
  'statements together': (db, id) => Promise.all([db.execute(INSERT, [id]), db.execute(INSERT, [`${id}+`])]),
  'a transaction': (db, id) => db.transaction((tx) => tx.execute(INSERT, [id])),
  'a transaction that waits': (db, id) =>
    db.transaction(async (tx) => {
      await new Promise((done) => setTimeout(done, 20))
      await tx.execute(INSERT, [id])
    }),
}

/** The commits of one millisecond look at the files once. */
const nextLook = () => new Promise((done) => setTimeout(done, 5))

for (const [what, lose] of Object.entries(LOSSES))
  for (const [how, write] of Object.entries(WRITES))
    test(`${what}: ${how} is refused at once, and taken when it is back`, async (t) => {
      const path = join(temporaryFolder(t), 'data', 'service.db')
      mkdirSync(dirname(path))
      const db = await createDb(t, { sqlitePath: path })
      await db.execute('CREATE TABLE kept (id TEXT PRIMARY KEY)')
      await write(db, 'before')
      const putBack = lose(path)
      await nextLook()
      await rejectsWith('unavailable', write(db, 'lost'), /removed or replaced/)
      assert.match(db.unreadyReason() ?? '', /removed or replaced/)
      putBack()
      await until(() => db.unreadyReason() === null, 'writes are taken again')
      await write(db, 'after')
      const kept = await db.query<{ id: string }>("SELECT id FROM kept WHERE id NOT LIKE '%+' ORDER BY id")
      assert.deepEqual(kept, [{ id: 'after' }, { id: 'before' }])
    })

test('the file is removed while a transaction is open: its commit is refused', async (t) => {
  const path = join(temporaryFolder(t), 'service.db')
  const db = await createDb(t, { sqlitePath: path })
  await db.execute('CREATE TABLE kept (id TEXT PRIMARY KEY)')
  const written = gate()
  const goOn = gate()
  const transaction = db.transaction(async (tx) => {
    await tx.execute(INSERT, ['a'])
    written.open()
    await goOn.opened
  })
  await written.opened
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`)
  await nextLook()
  goOn.open()
  await rejectsWith('unavailable', transaction, /removed or replaced/)
})
