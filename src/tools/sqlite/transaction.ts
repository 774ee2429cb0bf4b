import type { Queryable, SqlValue } from '../../contracts/db.ts'
import type { DbError } from '../../core/errors/db-error.ts'
import { TRANSACTION_IDLE_MS } from '../../stores/sql/limits.ts'
import type { Outcome } from '../../stores/sql/outcome.ts'
import { idleTransactionRefused, refuseInTransaction } from '../../stores/sql/refusals.ts'
import type { Connection } from './connection.ts'
import { toDbError } from './failure.ts'

/** Milliseconds between two calls of `onPulse`. */
const PULSE_MS = 100

export interface TransactionOptions {
  readonly connection: Connection
  /** Called every 100 ms while the transaction lasts. */
  readonly onPulse: () => void
  readonly instrument: <T extends object>(target: T) => T
  readonly idleMs?: number
}

type Status = 'open' | 'failed' | 'over'

/**
 * Runs `work` on a connection on which `BEGIN IMMEDIATE` has succeeded, and ends the transaction.
 *
 * When a statement fails, further statements are refused and the transaction is rolled back, even when `work` caught the error. It is
 * the same on PostgreSQL.
 * @throws what `work` rejects with, or DbError
 */
export async function runTransaction<T>(work: (tx: Queryable) => Promise<T>, options: TransactionOptions): Promise<T> {
  const { connection, idleMs = TRANSACTION_IDLE_MS } = options
  let status: Status = 'open'
  let failure: DbError | null = null
  let lastStatementMs = performance.now()

  function run(sql: string, params: readonly SqlValue[]): Outcome {
    refuseInTransaction(status === 'over', failure)
    lastStatementMs = performance.now()
    try {
      return connection.run(sql, params)
    } catch (thrown) {
      status = 'failed'
      failure = toDbError(thrown)
      throw failure
    }
  }

  // Closures, not a class: they do not depend on `this`, which differs behind a proxy.
  const tx: Queryable = {
    query: async <R>(sql: string, params: readonly SqlValue[] = []) => run(sql, params).rows as R[],
    queryOne: async <R>(sql: string, params: readonly SqlValue[] = []) => (run(sql, params).rows[0] as R) ?? null,
    execute: async <R>(sql: string, params: readonly SqlValue[] = []) => {
      const { rowCount, rows } = run(sql, params)
      return { rowCount, rows: rows as R[] }
    },
  }

  let heartbeat: NodeJS.Timeout | undefined
  const idle = new Promise<never>((_, reject) => {
    heartbeat = setInterval(() => {
      options.onPulse()
      if (performance.now() - lastStatementMs < idleMs) return
      reject(idleTransactionRefused(idleMs))
    }, PULSE_MS)
  })

  try {
    const result = await Promise.race([(async () => work(options.instrument(tx)))(), idle])
    if (failure) throw failure
    commit(connection)
    return result
  } catch (thrown) {
    rollback(connection)
    throw thrown
  } finally {
    status = 'over'
    clearInterval(heartbeat)
  }
}

function commit(connection: Connection): void {
  try {
    connection.commit()
  } catch (thrown) {
    throw toDbError(thrown)
  }
}

function rollback(connection: Connection): void {
  try {
    connection.rollback()
  } catch {
    // The first error matters more. The next `begin` of this connection rolls back what may be left.
  }
}
