import { DbError } from '../../core/errors/db-error.ts'
import type { Parameters } from './parameter.ts'

// Every database refuses these, with the same messages.

/** SQLite reads up to a NUL character and ignores the rest; PostgreSQL cannot be sent one. @throws DbError `syntax` */
export function refuseNul(sql: string): void {
  if (sql.includes('\0')) throw new DbError('syntax', 'The statement contains a NUL character')
}

/** For a statement that begins or ends a transaction. @param command its first word */
export function transactionControlRefused(command: string): DbError {
  return new DbError('other', `${command} cannot be sent: use db.transaction(async tx => …)`)
}

/** @throws DbError `syntax` when a number below the highest has no placeholder */
export function refuseMissingParameter({ parameterCount, missingParameter }: Parameters): void {
  if (missingParameter === null) return
  throw new DbError('syntax', `The statement uses $${parameterCount} but not $${missingParameter}`)
}

/** @param failure of the statement that doomed the transaction @throws DbError `other` when the transaction takes no more statements */
export function refuseInTransaction(isOver: boolean, failure: DbError | null): void {
  if (isOver) throw new DbError('other', 'This transaction is over: its tx takes no more statements')
  if (failure === null) return
  throw new DbError('other', `This transaction has failed and will be rolled back: ${failure.message}`, {
    cause: failure,
  })
}

export function idleTransactionRefused(idleMs: number): DbError {
  return new DbError('timeout', `The transaction was rolled back after ${idleMs} ms without a statement`)
}

/** @param command of a migration's statement that begins or ends a transaction; null: there is none @throws DbError `other` */
export function refuseControlInMigration(command: string | null): void {
  if (command === null) return
  throw new DbError('other', `it contains ${command}, but a migration runs in a transaction already`)
}
