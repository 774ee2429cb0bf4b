import type { Queryable } from '../../contracts/db.ts'
import type { TransactionCompanion } from '../../contracts/transaction-companion.ts'

/** The tool `db` as the log uses it: without the meter, since no plugin calls it. */
export interface LogDatabase extends Queryable {
  /** What an implementation says of itself. */
  readonly dialect: 'sqlite' | 'postgres'
  /** On a file, which one process has at a time: false when another one has it. */
  claim?(): boolean
  /**
   * On a server: tells of each notification of a channel, and of each time that the connection is there again, when some may have been missed.
   * @param told gets the payload; empty after a reconnection
   * @returns ends it
   */
  listen?(channel: string, told: (payload: string) => void): () => void
  /**
   * @param accompany makes what goes with each run of `work`
   * @param handler what `work` calls: see SqlDatabase
   */
  transaction<T>(
    work: (tx: Queryable) => Promise<T>,
    accompany?: () => TransactionCompanion,
    handler?: unknown,
  ): Promise<T>
}

/** The database of the log; null when the tool does not say which SQL it speaks. @param tool an instance of the tool `db` */
export function logDatabaseOf(tool: object | undefined): LogDatabase | null {
  const dialect = (tool as Partial<LogDatabase> | undefined)?.dialect
  return dialect === 'sqlite' || dialect === 'postgres' ? (tool as LogDatabase) : null
}
