import { DbError } from '../../core/errors/db-error.ts'
import type { Outcome } from '../../stores/sql/database.ts'
import type { Connection } from './connection.ts'
import { isBusy, isConstraint, toDbError } from './failure.ts'
import type { Item, Write } from './queued.ts'

/** Most writes in one commit. */
export const MAX_WRITES = 512
/** After so many milliseconds a batch is committed as it is, so that the event loop and other threads get their turn. */
export const MAX_BATCH_MS = 5

interface Batch {
  /** How many items at the front of the queue were answered. */
  settled: number
  /** The other items wait for SQLite's lock. */
  busy: boolean
}

/** Calls `answer` when everything that is committed by now is as safe as the settings want; `fail` when the disk did not take it. */
export type Settle = (answer: () => void, fail: (error: DbError) => void) => void

/**
 * Runs the writes at the front of the queue in one commit and answers them after it. Never throws.
 *
 * They have no savepoints: SQLite undoes a statement that fails by itself and leaves the transaction open
 * (https://sqlite.org/lang_conflict.html, ABORT). When it rolls back everything (`OR ROLLBACK`, a full disk), or when the commit
 * finds a violated constraint (deferred foreign keys), nothing of the batch is stored, and each write is run again alone.
 */
export function commitTogether(connection: Connection, items: readonly Item[], settle: Settle): Batch {
  const writes = leadingWrites(items)
  if (writes.length === 1) return commitAlone(connection, writes, settle)
  try {
    connection.begin()
  } catch (thrown) {
    if (isBusy(thrown)) return { settled: 0, busy: true }
    return rejectAll(writes, thrown)
  }
  const results = runUntilUndone(connection, writes)
  const done = writes.slice(0, results.length)
  if (!connection.inTransaction) return commitAlone(connection, done, settle)
  try {
    connection.commit()
  } catch (thrown) {
    rollback(connection)
    return isConstraint(thrown) ? commitAlone(connection, done, settle) : rejectAll(done, thrown)
  }
  settle(
    () => {
      for (let i = 0; i < done.length; i++) answer(done[i]!, results[i]!)
    },
    (error) => void rejectAll(done, error),
  )
  return { settled: done.length, busy: false }
}

function leadingWrites(items: readonly Item[]): Write[] {
  const writes: Write[] = []
  for (const item of items) {
    if (item.kind !== 'write' || writes.length === MAX_WRITES) break
    const isAlone = item.solitary || item.isAlone
    if (isAlone && writes.length > 0) break
    writes.push(item)
    if (isAlone) break
  }
  return writes
}

/** The results of as many writes as the time allows, or up to the one at which SQLite rolled back the whole batch. */
function runUntilUndone(connection: Connection, writes: readonly Write[]): (Outcome | DbError)[] {
  const results: (Outcome | DbError)[] = []
  const endMs = performance.now() + MAX_BATCH_MS
  for (const write of writes) {
    try {
      results.push(connection.run(write.sql, write.params))
    } catch (thrown) {
      results.push(toDbError(thrown))
      if (!connection.inTransaction) break
    }
    if (performance.now() > endMs) break
  }
  return results
}

/** Runs each write in its own commit. */
function commitAlone(connection: Connection, writes: readonly Write[], settle: Settle): Batch {
  let settled = 0
  for (const write of writes) {
    try {
      const outcome = connection.run(write.sql, write.params)
      settle(() => write.resolve(outcome), write.reject)
    } catch (thrown) {
      if (isBusy(thrown)) return { settled, busy: true }
      write.reject(toDbError(thrown))
    }
    settled++
  }
  return { settled, busy: false }
}

function rejectAll(writes: readonly Write[], thrown: unknown): Batch {
  for (const write of writes) write.reject(toDbError(thrown))
  return { settled: writes.length, busy: false }
}

function answer(write: Write, result: Outcome | DbError): void {
  if (result instanceof DbError) write.reject(result)
  else write.resolve(result)
}

function rollback(connection: Connection): void {
  try {
    connection.rollback()
  } catch {
    // The error of the commit matters more. The next `begin` of this connection rolls back what may be left.
  }
}
