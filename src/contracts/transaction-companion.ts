import type { DbError } from '../core/errors/db-error.ts'
import type { Queryable, SqlValue } from './db.ts'

/**
 * What goes with one run of a transaction's function, for example events that are stored with its rows. Each run has its own: a function
 * that is run again gets another one.
 */
export interface TransactionCompanion {
  /** What the function gets: the `tx` with more methods. */
  extend(tx: Queryable): Queryable
  /** The `tx` as it was before: for statements of the runtime itself, which are not measured. Null until then. */
  readonly own: Queryable | null
  /** False: it has no statements of its own. */
  readonly hasLastStatements: boolean
  /**
   * Statements that run last, after the function has resolved and before the transaction can commit. The first that fails rolls it back.
   * @param others of the same thread, which share the commit: with their statements, in their order
   */
  lastStatements(others?: readonly TransactionCompanion[]): readonly LastStatement[]
  /** What the caller gets when one of them has failed. Default: the error. */
  refusal?(error: DbError): Error
  /** The commit has succeeded (with SQLITE_SYNCHRONOUS=full, on the disk, too). Called right before the promise of `transaction` resolves. */
  committed(): void
  /** Nothing of this run is stored. Another run may follow, or the promise of `transaction` rejects right afterwards. */
  rolledBack(): void
  /** The outcome of the commit is not known, or not that it is on the disk. The promise of `transaction` rejects with the error. */
  unknown(error: DbError): void
}

export interface LastStatement {
  readonly sql: string
  readonly params: readonly SqlValue[]
}
