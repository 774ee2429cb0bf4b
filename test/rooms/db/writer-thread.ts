import SqliteDb from '../../../src/tools/sqlite/index.ts'
import { runtimeFor } from './fixture.ts'

export interface WriterTask {
  sqlitePath: string
  lockMemory: SharedArrayBuffer
  lane: number
  /** Writes of each of `inFlight` chains. */
  writes: number
  inFlight: number
  transactions: number
  /** Dies inside of a transaction instead of doing all this. */
  die?: boolean
}

export interface WriterResult {
  /** Longest time that one call took, in milliseconds. */
  worstMs: number
}

/** A thread of its own that writes to the shared file. */
export default async function write(task: WriterTask): Promise<WriterResult> {
  const { sqlitePath, lockMemory, lane } = task
  const db = new SqliteDb(runtimeFor({ sqlitePath, lockMemory, thread: { kind: 'lane', index: lane } }))
  await db.boot()
  if (task.die) {
    await db.transaction(async (tx) => {
      await tx.execute(`INSERT INTO items (id) VALUES ('of the dead')`)
      process.exit(1)
    })
  }
  let worstMs = 0
  const timed = async (work: Promise<unknown>) => {
    const startMs = performance.now()
    await work
    worstMs = Math.max(worstMs, performance.now() - startMs)
  }
  const chain = async (chainIndex: number) => {
    for (let n = 0; n < task.writes; n++) {
      await timed(db.execute('INSERT INTO items (id) VALUES ($1)', [`${lane}-${chainIndex}-${n}`]))
    }
  }
  const counting = async () => {
    for (let n = 0; n < task.transactions; n++) {
      await timed(
        db.transaction(async (tx) => {
          const row = await tx.queryOne<{ n: number }>('SELECT n FROM counter')
          await new Promise(setImmediate)
          await tx.execute('UPDATE counter SET n = $1', [(row?.n ?? 0) + 1])
        }),
      )
    }
  }
  await Promise.all([counting(), ...Array.from({ length: task.inFlight }, (_, index) => chain(index))])
  await db.stop()
  return { worstMs }
}
