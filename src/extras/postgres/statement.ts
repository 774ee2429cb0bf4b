// Statements that were checked.
import { hash } from 'node:crypto'
import type { TransactionOptions } from '../../contracts/db.ts'
import { RecentlyUsed } from '../../core/collections/recently-used.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { movedMemory } from '../../core/schedule/moved-time.ts'
import { ROWS_AS_ARRAYS } from '../../core/sql/fragment.ts'
import {
  foreignPlaceholderRefused,
  isTransactionControl,
  refuseMissingParameter,
  refuseNul,
  type SqlShape,
  shapeOf,
  transactionControlRefused,
} from '../../stores/sql/statement.ts'
import { POSTGRES_DIALECT } from '../../stores/sql/tokens.ts'
import { MARK } from './session-rules.ts'
import { leftInSession } from './session-state.ts'

// These change the connection, which another statement uses next.
const SESSION = new Set(['RESET', 'LISTEN', 'UNLISTEN', 'DISCARD', 'PREPARE', 'DEALLOCATE', 'DECLARE'])

/** True for a statement whose effect on the connection would outlive it. `SET LOCAL` and `SET TRANSACTION` end with the transaction. */
function isSessionControl({ command, second }: Pick<SqlShape, 'command' | 'second'>): boolean {
  return SESSION.has(command) || (command === 'SET' && !['LOCAL', 'TRANSACTION', 'CONSTRAINTS'].includes(second))
}

/** Most statements that a thread remembers: their shape, and whether they were sent before. */
const MAX_STATEMENTS = 1024
/** Longer texts are neither remembered nor prepared: they are used once, and would fill the memory. */
const MAX_TEXT = 16_384
/** The protocol counts parameters in 16 bits. */
const MAX_PARAMETERS = 65_535

/** A statement that was checked and may be sent. */
export class Statement {
  readonly sql: string
  /** Rows are arrays of what the server writes, for the libraries on top of the tool. */
  readonly hasArrays: boolean
  readonly parameterCount: number
  #digest = ''
  /** It was sent more than once, so it is worth preparing. A text with its values written into it comes only once. */
  isRepeated = false
  /** It begins a transaction. */
  readonly begins: boolean
  /** It names no table and no value, and the server refuses it in a transaction: it takes no settings. */
  readonly isBare: boolean

  constructor(sql: string, parameterCount: number, kind: 'begins' | 'bare' | '' = '') {
    this.begins = kind === 'begins'
    this.isBare = kind === 'bare'
    this.sql = sql
    this.hasArrays = sql.startsWith(ROWS_AS_ARRAYS)
    this.parameterCount = parameterCount
  }

  /** Identifies the text wherever it is prepared. The parameters have no types of their own: the server infers them from the text. */
  get digest(): string {
    this.#digest ||= hash('sha256', this.sql, 'base64url')
    return this.#digest
  }
}

const LEVELS = ['serializable', 'repeatable read', 'read committed'] as const
const BEGINS = new Map(
  LEVELS.flatMap((level) =>
    ['', ' READ ONLY'].map(
      (access) =>
        [level + access, control(`BEGIN ISOLATION LEVEL ${level.toUpperCase()}${access} NOT DEFERRABLE`)] as const,
    ),
  ),
)

/** The level is said, and that it waits for no other, whatever the default is. That a transaction may write is not: who has set the server to read-only means it. */
export function beginOf({ isolation = 'serializable', readOnly = false }: TransactionOptions): Statement {
  return BEGINS.get(isolation + (readOnly ? ' READ ONLY' : ''))!
}

export const COMMIT = control('COMMIT')
export const ROLLBACK = control('ROLLBACK')

function control(sql: string): Statement {
  const statement = new Statement(sql, 0, sql.startsWith('BEGIN') ? 'begins' : '')
  statement.isRepeated = true
  return statement
}

/** The mark of the session; the connection compares it. */
export const CHECK = control(`SELECT current_setting('${MARK}', true) AS session`)

/** What tells the time of the server. */
const ASKS_TIME =
  /\b(?:(?:now|clock_timestamp|statement_timestamp|transaction_timestamp)\s*\(|(?:current_(?:timestamp|date|time)|localtime(?:stamp)?)\b)/i
const OWN_TABLE = /\bheddle_/

/** The statements of one thread by their text. */
export class Statements {
  readonly #known = new RecentlyUsed<string, Statement>(MAX_STATEMENTS)
  readonly #asksTime: (sql: string) => void

  /** @param asksTime told of statements that ask the server for the time, where a test moves it */
  constructor(asksTime: (sql: string) => void = () => {}) {
    this.#asksTime = asksTime
  }

  /** @throws DbError `other` for transaction control, `syntax` for placeholders other than `$n` */
  get(sql: string): Statement {
    const known = this.#known.get(sql)
    if (known !== undefined) {
      known.isRepeated = true
      return known
    }
    const statement = checked(sql)
    if (movedMemory() !== null && ASKS_TIME.test(sql) && !OWN_TABLE.test(sql)) this.#asksTime(sql)
    if (sql.length <= MAX_TEXT) this.#known.add(sql, statement)
    return statement
  }
}

function checked(sql: string): Statement {
  refuseNul(sql)
  const shape = shapeOf(sql, POSTGRES_DIALECT)
  const { command, foreignPlaceholder, parameterCount } = shape
  if (command === '') throw new DbError('syntax', 'The statement is empty')
  if (isTransactionControl(command, shape.second)) throw transactionControlRefused(command)
  if (command === 'COPY') throw new DbError('other', 'COPY cannot be sent: it needs a stream')
  if (isSessionControl(shape)) {
    throw new DbError(
      'other',
      `${command} cannot be sent: it would change a connection that other statements use next` +
        (command === 'SET' ? '; use SET LOCAL in a transaction' : ''),
    )
  }
  const left = leftInSession(sql)
  if (left !== null) {
    const { what, instead } = left
    throw new DbError('other', `${what} would stay in a session that other statements use next: send ${instead}`)
  }
  // A question mark may be an operator of JSON.
  const isOperator = foreignPlaceholder?.startsWith('?') && (parameterCount > 0 || /\?[|&]|\?\s*'/.test(sql))
  if (foreignPlaceholder !== null && !isOperator) throw foreignPlaceholderRefused(foreignPlaceholder)
  if (parameterCount > MAX_PARAMETERS) throw new DbError('syntax', `$${parameterCount} is more than $${MAX_PARAMETERS}`)
  refuseMissingParameter(shape)
  const isBare = shape.second === 'DATABASE' && ['CREATE', 'DROP'].includes(command)
  return new Statement(sql, parameterCount, isBare ? 'bare' : '')
}
