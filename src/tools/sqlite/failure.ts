// Errors of SQLite, and waiting for a file that is locked.
import { DbError, type DbErrorKind } from '../../core/errors/catalogue.ts'
import { isInstance, messageOf, codeOf as ownCodeOf } from '../../core/errors/description.ts'
import { WAIT_MS } from '../../stores/sql/database.ts'

// Extended result codes: https://sqlite.org/rescode.html
const CONSTRAINTS: Record<string, DbErrorKind> = {
  SQLITE_CONSTRAINT_UNIQUE: 'unique_violation',
  SQLITE_CONSTRAINT_PRIMARYKEY: 'unique_violation',
  SQLITE_CONSTRAINT_ROWID: 'unique_violation',
  SQLITE_CONSTRAINT_FOREIGNKEY: 'foreign_key_violation',
  SQLITE_CONSTRAINT_NOTNULL: 'not_null_violation',
  SQLITE_CONSTRAINT_CHECK: 'check_violation',
}
const UNAVAILABLE = /^SQLITE_(?:FULL|IOERR|CANTOPEN|READONLY|NOTADB|CORRUPT|PERM|AUTH|PROTOCOL|NOMEM|NOLFS)(?:_|$)/
// SQLITE_ERROR is the code of these messages, but also of many faults of correct statements.
const SYNTAX =
  /^(?:no such |near "|unrecognized token|incomplete input|ambiguous column|table .* (?:already exists|has )|.*syntax error)/

/** The driver's code, for example `SQLITE_BUSY`; empty for an error that is not from SQLite. */
function codeOf(thrown: unknown): string {
  const code = ownCodeOf(thrown)
  return code?.startsWith('SQLITE_') ? code : ''
}

/** True when another connection holds the lock that the statement needs. It has not run and can be tried again. */
export function isBusy(thrown: unknown): boolean {
  const code = codeOf(thrown)
  return /^SQLITE_(?:BUSY|LOCKED)/.test(code) && code !== 'SQLITE_BUSY_SNAPSHOT'
}

/** Milliseconds before a read, or opening the file, is tried again because the file was locked. */
const BUSY_PAUSE_MS = 5

/** Tries again until the file is no longer locked. Times in milliseconds. @throws DbError what `work` throws, and `timeout` after `waitMs` */
export async function whenFree<T>(work: () => T, waitMs = WAIT_MS, pauseMs = BUSY_PAUSE_MS): Promise<T> {
  const deadlineMs = performance.now() + waitMs
  for (;;) {
    try {
      return work()
    } catch (thrown) {
      if (!isBusy(thrown) || performance.now() >= deadlineMs) throw toDbError(thrown)
    }
    await new Promise((done) => setTimeout(done, pauseMs))
  }
}

/** True when the statement violated a constraint. */
export function isConstraint(thrown: unknown): boolean {
  return codeOf(thrown).startsWith('SQLITE_CONSTRAINT')
}

/**
 * The DbError for anything that the driver threw, with the same message.
 * @param preparing the error occurred while the statement was prepared: then a fault of the statement is `syntax`
 */
export function toDbError(thrown: unknown, preparing = false): DbError {
  if (isInstance(thrown, DbError)) return thrown
  return new DbError(kindOf(thrown, preparing), messageOf(thrown), { cause: thrown })
}

function kindOf(thrown: unknown, preparing: boolean): DbErrorKind {
  const code = codeOf(thrown)
  const message = messageOf(thrown)
  if (code === '') {
    if (message.includes('connection is not open')) return 'unavailable'
    return preparing ? 'syntax' : 'other'
  }
  if (isBusy(thrown) || code === 'SQLITE_INTERRUPT') return 'timeout'
  if (code === 'SQLITE_BUSY_SNAPSHOT') return 'serialization'
  // SQLite implements ON DELETE RESTRICT as a trigger.
  if (code === 'SQLITE_CONSTRAINT_TRIGGER' && message === 'FOREIGN KEY constraint failed')
    return 'foreign_key_violation'
  if (CONSTRAINTS[code]) return CONSTRAINTS[code]
  if (UNAVAILABLE.test(code)) return 'unavailable'
  if (code === 'SQLITE_ERROR' && (preparing || SYNTAX.test(message))) return 'syntax'
  return 'other'
}
