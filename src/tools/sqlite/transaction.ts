import type { Queryable, SqlValue } from '../../contracts/db.ts'
import type { DbError } from '../../core/errors/db-error.ts'
import { TRANSACTION_IDLE_MS } from '../../stores/sql/limits.ts'
import type { Outcome } from '../../stores/sql/outcome.ts'
import { idleTransactionRefused, refuseInTransaction } from '../../stores/sql/refusals.ts'
import { toDbError } from './failure.ts'

/** Milliseconds between two calls of `onPulse`. */
export const PULSE_MS = 100

/** Where the statements of a transaction run: a connection of this thread, or a process. A process answers later. */
export interface TransactionSession {
  run(sql: string, params: readonly SqlValue[]): Outcome | Promise<Outcome>
  commit(): void | Promise<void>
  /** Never fails because there is nothing to roll back. */
  rollback(): void | Promise<void>
}

export interface TransactionOptions {
  /** It has begun. */
  readonly connection: TransactionSession
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
  let runningCount = 0

  async function run(sql: string, params: readonly SqlValue[]): Promise<Outcome> {
    refuseInTransaction(status === 'over', failure)
    runningCount++
    try {
      const outcome = connection.run(sql, params)
      return outcome instanceof Promise ? await outcome : outcome
    } catch (thrown) {
      if (status === 'open') status = 'failed'
      failure ??= toDbError(thrown)
      throw failure
    } finally {
      runningCount--
      lastStatementMs = performance.now()
    }
  }

  // Closures, not a class: they do not depend on `this`, which differs behind a proxy.
  const tx: Queryable = {
    query: async <R>(sql: string, params: readonly SqlValue[] = []) => (await run(sql, params)).rows as R[],
    queryOne: async <R>(sql: string, params: readonly SqlValue[] = []) =>
      ((await run(sql, params)).rows[0] as R) ?? null,
    execute: async <R>(sql: string, params: readonly SqlValue[] = []) => {
      const { rowCount, rows } = await run(sql, params)
      return { rowCount, rows: rows as R[] }
    },
  }

  let heartbeat: NodeJS.Timeout | undefined
  const idle = new Promise<never>((_, reject) => {
    heartbeat = setInterval(() => {
      options.onPulse()
      if (runningCount > 0 || performance.now() - lastStatementMs < idleMs) return
      reject(idleTransactionRefused(idleMs))
    }, PULSE_MS)
  })

  try {
    const result = await Promise.race([(async () => work(options.instrument(tx)))(), idle])
    if (failure) throw failure
    await commit(connection)
    return result
  } catch (thrown) {
    await rollback(connection)
    throw thrown
  } finally {
    status = 'over'
    clearInterval(heartbeat)
  }
}

async function commit(connection: TransactionSession): Promise<void> {
  try {
    await connection.commit()
  } catch (thrown) {
    throw toDbError(thrown)
  }
}

async function rollback(connection: TransactionSession): Promise<void> {
  try {
    await connection.rollback()
  } catch {
    // The first error matters more. The next `begin` of this connection rolls back what may be left.
  }
}
