// Errors of a database, and those that no further attempt helps.
import { HeddleError } from './catalogue.ts'

/**
 * Thrown by a subscriber, it says that another attempt would fail, too: the delivery becomes a dead letter at once, whatever its `retries`.
 * What counts is the value that was thrown, or that the handler's promise was rejected with: an instance of this class or of a class that
 * extends it. One that is the `cause` of another error, or among those of an AggregateError, is not seen.
 */
export class Unrecoverable extends Error {
  override name = 'Unrecoverable'
}

/** Why a statement failed; the same on every database. */
export type DbErrorKind =
  | 'unique_violation'
  | 'foreign_key_violation'
  | 'not_null_violation'
  | 'check_violation'
  | 'serialization'
  | 'timeout'
  | 'unavailable'
  | 'syntax'
  | 'other'

/** A failed database statement. `kind` is the same on every database; `cause` is the driver's own error. */
export class DbError extends HeddleError {
  readonly kind: DbErrorKind

  constructor(kind: DbErrorKind, message: string, options?: { cause?: unknown }) {
    super('DB_ERROR', message, options)
    this.name = 'DbError'
    this.kind = kind
  }

  /** The statement itself was right: the same one may succeed later. */
  get isPassing(): boolean {
    return this.kind === 'unavailable' || this.kind === 'timeout'
  }
}
