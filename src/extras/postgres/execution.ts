// One statement on the wire, with its values both ways.

import type { FieldDef, Submittable, Connection as Wire } from 'pg'
import type { Row } from '../../contracts/db.ts'
import type { Outcome } from '../../stores/sql/database.ts'
import { checkCount, parameterOf } from '../../stores/sql/statement.ts'
import type { SessionRules } from './session-rules.ts'
import type { Statement } from './statement.ts'

/** A parameter as it is sent: text, bytes, or NULL. */
type WireValue = string | Buffer | null

/** Converts a column's text to a value. Without a decoder the text is the value. */
type Decoder = (text: string) => unknown

/**
 * Parameters are sent without a type. PostgreSQL infers it from the context, so a number can be stored in a TEXT column and a text
 * compared with a UUID, as on SQLite. Without any context (`SELECT $1`) it is text; `CAST($1 AS INTEGER)` gives it another type.
 * @throws DbError `other` for a wrong number of values, and for a value that some database would not store unchanged
 */
export function wireValues(params: readonly unknown[], expected: number): WireValue[] {
  checkCount(params, expected)
  const values: WireValue[] = new Array(expected)
  for (let i = 0; i < expected; i++) values[i] = wireValue(params[i], i + 1)
  return values
}

function wireValue(value: unknown, number: number): WireValue {
  const parameter = parameterOf(value, number)
  switch (typeof parameter) {
    case 'string':
      return parameter
    case 'boolean':
      // Valid for a BOOLEAN and for an INTEGER column.
      return parameter ? '1' : '0'
    case 'object':
      if (parameter === null || Buffer.isBuffer(parameter)) return parameter
      return Buffer.from(parameter.buffer, parameter.byteOffset, parameter.byteLength)
    default:
      return String(parameter)
  }
}

/** Every integer with up to so many digits is safe. */
const SAFE_DIGITS = 15
const TIMESTAMP = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?(?:\+00)?$/

function decodeInteger(text: string): number | bigint {
  const number = Number(text)
  return text.length <= SAFE_DIGITS || Number.isSafeInteger(number) ? number : BigInt(text)
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/** Digits and power of ten: equal for texts of the same number. */
function normalDecimal(text: string): string {
  const [, sign, whole, part = '', power = '0'] = DECIMAL.exec(text) ?? []
  if (whole === undefined) return text
  const digits = (whole + part).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  return `${sign}${significant}e${Number(power) - part.length + digits.length - significant.length}`
}

/** A number where it has the same decimal digits; else the text, which is stored again as it is. Zeros at the end do not count. */
function decodeNumeric(text: string): number | string {
  const number = Number(text)
  return text.length <= SAFE_DIGITS || normalDecimal(String(number)) === normalDecimal(text) ? number : text
}

/** The same text that a Date parameter becomes. Infinity and years BC stay as PostgreSQL writes them. */
function decodeTimestamp(text: string): string {
  const match = TIMESTAMP.exec(text)
  return match === null ? text : `${match[1]}T${match[2]}.${(match[3] ?? '').padEnd(3, '0')}Z`
}

// The keys are type ids of pg_type.dat, which never change.
const DECODERS = new Map<number, Decoder>([
  [16, (text) => text === 't'],
  [17, (text) => Buffer.from(text.slice(2), 'hex')],
  [20, decodeInteger],
  [21, Number],
  [23, Number],
  [26, Number],
  [700, Number],
  [701, Number],
  [1114, decodeTimestamp],
  [1184, decodeTimestamp],
  [1700, decodeNumeric],
])

/** Libraries have decoders of their own for these: timestamps, NUMERIC. */
const LEFT_TO_LIBRARIES: ReadonlySet<number> = new Set([1114, 1184, 1700])

/** Other types come as PostgreSQL writes them: JSON, UUID, DATE, arrays. */
export function decoderOf(typeId: number, isForLibrary = false): Decoder | undefined {
  return isForLibrary && LEFT_TO_LIBRARIES.has(typeId) ? undefined : DECODERS.get(typeId)
}

/** Columns of a result. They are the same each time a prepared statement runs; otherwise PostgreSQL refuses to run it. */
export interface Columns {
  readonly names: readonly string[]
  readonly decoders: readonly (Decoder | undefined)[]
}

const NO_COLUMNS: Columns = { names: [], decoders: [] }

/** A statement that one connection has prepared. */
export interface Prepared {
  readonly name: string
  readonly columns: Columns
}

/** The prepared statements of a connection, as an execution on it uses them. */
export interface Preparations {
  /** Statements prepared on it are there when it is used again. */
  readonly keepsSession: boolean
  /** A prepared statement that its session alone has; null: there is none. */
  readonly guard: string | null
  /** What a statement, or the transaction that it begins, has to set first; null: it is set. */
  readonly session: SessionRules | null
  /** Names of prepared statements that must be closed on the server. Each is returned once. */
  takeClosed(): readonly string[]
  /** Undefined: this connection has not prepared it. */
  preparedOf(statement: Statement): Prepared | undefined
  /** The name under which this connection prepares it. */
  nameOf(statement: Statement): string
  prepared(statement: Statement, columns: Columns): void
  /** The statement failed while it was being prepared: it is not known whether the server has it. */
  doubtful(statement: Statement): void
  settled(execution: Execution): void
}

const NOTHING = (): void => {}

/**
 * One execution of a statement on a connection. It implements the extended protocol itself, because pg's own Query asks the server for
 * the columns each time, and is an event emitter with its own result object.
 */
export class Execution implements Submittable, Outcome {
  rowCount = 0
  rows: Row[] = []
  /** The error of the server or the connection; null when it succeeded. */
  failure: unknown = null
  /** The server has taken the statement with its values: from here on it may have taken effect, whatever follows. */
  isBound = false
  #isSent = false
  readonly statement: Statement
  readonly values: readonly WireValue[]
  readonly #done: (execution: Execution) => void
  /** Returns the connection to the pool; null when it is held for further statements. */
  release: (() => void) | null = null
  /** Agents that watch pg put their own here, to hear of the end, and read the text: without them theirs would throw (dd-trace). */
  callback: (failure: unknown, result: Outcome) => void = NOTHING
  #connection: Preparations | null = null
  #columns: Columns | undefined
  /** This execution also prepares the statement under its name. */
  #isPreparing = false
  #isSettled = false
  /** What comes first is the answer to the query that sets the session. */
  #isSetting = false

  /** @param done called once, when the connection is free again or has failed */
  constructor(statement: Statement, values: readonly WireValue[], done: (execution: Execution) => void) {
    this.statement = statement
    this.values = values
    this.#done = done
  }

  get text(): string {
    return this.statement.sql
  }

  /** Its connection had ended before anything of it was sent. */
  get isUnsent(): boolean {
    return this.#connection !== null && !this.#isSent
  }

  /** Not `on`: agents would take it for an event emitter (@sentry/node). */
  through(connection: Preparations): this {
    this.#connection = connection
    return this
  }

  /** Fails it, before or while it runs. */
  fail(thrown: unknown): void {
    if (this.#isSettled) return
    this.failure = thrown
    this.#settle()
  }

  bound(): void {
    if (!this.#isSetting) this.isBound = true
  }

  // ── called by pg ──────────────────────────────────────────────────────────

  submit(wire: Wire): void {
    this.#isSent = true
    const { statement } = this
    const connection = this.#connection!
    const { guard, session } = connection
    if (session !== null && statement.begins) return void wire.query(`${statement.sql}; ${session.setLocal}`)
    const isNamed = statement.isRepeated && connection.keepsSession
    const prepared = isNamed ? connection.preparedOf(statement) : undefined
    const isNew = prepared === undefined
    this.#isPreparing = isNew && isNamed
    const name = prepared?.name ?? (this.#isPreparing ? connection.nameOf(statement) : '')
    this.#columns = prepared?.columns
    wire.stream.cork()
    for (const closed of connection.takeClosed()) wire.close({ type: 'S', name: closed }, true)
    if (session !== null && !statement.isBare) {
      this.#isSetting = true
      wire.parse({ name: '', text: session.localQuery, types: [] }, true)
      wire.bind({ statement: '', values: [] }, true)
      wire.execute(null, true)
    }
    // On another session this fails, and what follows it is not run.
    if (isNew && guard !== null) wire.describe({ type: 'S', name: guard }, true)
    if (isNew) wire.parse({ name, text: statement.sql, types: [] }, true)
    wire.bind({ statement: name, values: this.values as WireValue[] }, true)
    if (isNew) wire.describe({ type: 'P', name: '' }, true)
    wire.execute(null, true)
    wire.sync()
    wire.stream.uncork()
  }

  handleRowDescription({ fields }: { fields: readonly FieldDef[] }): void {
    this.#columns = {
      names: fields.map(({ name }) => name),
      decoders: fields.map(({ dataTypeID }) => decoderOf(dataTypeID, this.statement.hasArrays)),
    }
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    if (this.#isSetting) return
    const { names, decoders } = this.#columns!
    if (this.statement.hasArrays) {
      const values = fields.map((text, i) => (text === null ? null : (decoders[i]?.(text) ?? text)))
      this.rows.push(values as unknown as Row)
      return
    }
    const row: Row = {}
    for (let i = 0; i < fields.length; i++) {
      const text = fields[i]!
      const decode = decoders[i]
      row[names[i]!] = decode === undefined || text === null ? text : decode(text)
    }
    this.rows.push(row)
  }

  /** The tag is `INSERT 0 1`, `SELECT 3`, `CREATE TABLE`. */
  handleCommandComplete({ text }: { text: string }): void {
    if (this.#isSetting) this.#isSetting = false
    else this.rowCount = Number(text.slice(text.lastIndexOf(' ') + 1)) || 0
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}

  handleCopyData(): void {}

  handleCopyInResponse(wire: Wire & { sendCopyFail(message: string): void }): void {
    // The server has ignored the sync that was sent with the statement.
    wire.sendCopyFail('there is no source')
    wire.sync()
  }

  handleReadyForQuery(): void {
    if (this.#isSettled) return
    if (this.#isPreparing) this.#connection!.prepared(this.statement, this.#columns ?? NO_COLUMNS)
    this.#settle()
  }

  handleError(thrown: unknown): void {
    if (this.#isSettled) return
    if (this.#isPreparing) this.#connection!.doubtful(this.statement)
    this.fail(thrown)
  }

  #settle(): void {
    this.#isSettled = true
    this.callback(this.failure, this)
    this.#connection?.settled(this)
    // First, because the caller may send its next statement as soon as it gets the result.
    this.release?.()
    this.#done(this)
  }
}
