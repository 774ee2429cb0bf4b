import type { DbErrorKind } from '../../contracts/db.ts'
import { HeddleError } from './catalogue.ts'

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
