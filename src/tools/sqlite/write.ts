import type { DbError } from '../../core/errors/db-error.ts'
import type { Outcome } from '../../stores/sql/outcome.ts'
import type { Promptness } from './promptness.ts'
import type { TransactionRun, TransactionSession } from './transaction.ts'

/** A single statement that writes. */
export interface Write {
  readonly kind: 'write'
  readonly sql: string
  readonly params: readonly unknown[]
  /** It cannot run in one transaction with others. */
  readonly solitary: boolean
  /** It was in a commit that failed, and is run again by itself. */
  isAlone: boolean
  readonly deadlineMs: number
  resolve(outcome: Outcome): void
  reject(error: DbError): void
}

/** A transaction. It shares its commit with others where it can. */
export interface Transaction {
  readonly kind: 'transaction'
  /** `alone`: it waits for more than its `tx`, or was in a commit that failed. `process`: it has met a heavy statement. */
  mode: 'shared' | 'alone' | 'process'
  readonly promptness: Promptness
  /** It has a savepoint when it shares a commit, whatever is known of its function. */
  isGuarded: boolean
  readonly deadlineMs: number
  /** Runs its function on a session that has begun, in the asynchronous context of its caller. */
  start(session: TransactionSession): TransactionRun
  resolve(result: unknown): void
  /** Its function has thrown, or the commit has failed. */
  fail(thrown: unknown): void
  /** It has not run. */
  reject(error: DbError): void
}

/** Something that holds the write lock until it has settled. */
export interface Exclusive {
  readonly kind: 'exclusive'
  readonly deadlineMs: number
  /** @throws SQLite's `busy` when it must be tried again */
  begin(): void
  /** Never rejects. */
  run(): Promise<void>
  reject(error: DbError): void
}

export type Item = Write | Transaction | Exclusive
