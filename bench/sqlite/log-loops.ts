// Events that are stored and forgotten as a loop would do it with the driver alone.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Database } from '../../src/stores/sqlite/driver.ts'
import { STORED_ENVELOPE, STORED_PAYLOAD } from '../domains/bench/tick-count.ts'

export interface LoopPlan {
  synchronous: 'full' | 'normal'
  /** Length of each loop. */
  measureMs: number
}

/** Events of one commit in the bare loop. */
const RUN = 20
const PAYLOAD = JSON.stringify(STORED_PAYLOAD)

/** Events per second. */
export default async function measureLoops({ synchronous, measureMs }: LoopPlan) {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-bench-'))
  const db = new Database(join(folder, 'loops.db'))
  db.pragma('journal_mode = WAL')
  db.pragma(`synchronous = ${synchronous}`)
  db.exec(
    `CREATE TABLE event (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, event TEXT NOT NULL, envelope TEXT NOT NULL, payload TEXT NOT NULL,
       key TEXT, due_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL);
     CREATE TABLE task (id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL, envelope TEXT NOT NULL, payload TEXT NOT NULL,
       claimed_at INTEGER);
     CREATE INDEX task_open ON task (claimed_at, id);`,
  )

  const perSecond = (loop: typeof bare): number => {
    const startMs = performance.now()
    const count = loop(db, startMs + measureMs)
    return (count / (performance.now() - startMs)) * 1000
  }
  const figures = { bare: perSecond(bare), poll: perSecond(poll) }
  db.close()
  rmSync(folder, { recursive: true, force: true })
  return figures
}

/** Inserts 20 in a commit, and deletes the run in another. */
function bare(db: InstanceType<typeof Database>, endMs: number): number {
  const insert = db.prepare('INSERT INTO event VALUES (?, ?, ?, ?, ?, NULL, 0, 0)')
  const remove = db.prepare('DELETE FROM event WHERE seq BETWEEN ? AND ?')
  const [begin, commit] = ['BEGIN IMMEDIATE', 'COMMIT'].map((sql) => db.prepare(sql))
  let seq = 0
  while (performance.now() < endMs) {
    const first = seq + 1
    begin!.run()
    for (let n = 0; n < RUN; n++)
      insert.run(++seq, 'evt_0197f7b0c0ffee0197f7b0c0ffee', 'bench.tick', STORED_ENVELOPE, PAYLOAD)
    commit!.run()
    remove.run(first, seq)
  }
  return seq
}

/** A table that is polled: insert, claim one, delete it, each by itself. */
function poll(db: InstanceType<typeof Database>, endMs: number): number {
  const insert = db.prepare('INSERT INTO task (event, envelope, payload) VALUES (?, ?, ?)')
  const claim = db.prepare(
    `UPDATE task SET claimed_at = ? WHERE id = (SELECT id FROM task WHERE claimed_at IS NULL ORDER BY id LIMIT 1)
     RETURNING id, event, envelope, payload`,
  )
  const remove = db.prepare('DELETE FROM task WHERE id = ?')
  let count = 0
  for (; performance.now() < endMs; count++) {
    insert.run('bench.tick', STORED_ENVELOPE, PAYLOAD)
    const { id } = claim.get(Date.now()) as { id: number }
    remove.run(id)
  }
  return count
}
