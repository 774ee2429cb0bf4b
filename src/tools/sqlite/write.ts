import type { DbError } from '../../core/errors/db-error.ts'
import type { Outcome } from '../../stores/sql/outcome.ts'

/** A single statement that writes. */
export interface Write {
  readonly kind: 'write'
  readonly sql: string
  readonly params: readonly unknown[]
  /** It cannot run in one transaction with others. */
  readonly solitary: boolean
  readonly deadlineMs: number
  resolve(outcome: Outcome): void
  reject(error: DbError): void
}

/** A transaction that holds the write lock until it has settled. */
export interface Exclusive {
  readonly kind: 'exclusive'
  readonly deadlineMs: number
  /** @throws SQLite's `busy` when it must be tried again */
  begin(): void
  /** Never rejects. */
  run(): Promise<void>
  reject(error: DbError): void
}
