/// <reference lib="es2024.string" />

// A statement, or a script of some, before a database gets it: what its text tells, its values, and what is refused of both.
import { DbError } from '../../core/errors/catalogue.ts'
import { type SqlDialect, SqlTokens } from './tokens.ts'

/** A value that every database accepts. */
export type Parameter = string | number | bigint | boolean | Uint8Array | null

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n

/** @throws DbError `other` unless there is one value for each placeholder */
export function checkCount(params: readonly unknown[], expected: number): void {
  // A text has a length, too.
  if (!Array.isArray(params)) throw new DbError('other', 'The values must be an array: query(statement, [value])')
  if (params.length === expected) return
  throw new DbError('other', `The statement has ${expected} parameter(s), but ${params.length} values were given`)
}

/**
 * The value of `$number` as it is sent: a Date becomes its ISO 8601 text in UTC.
 * @throws DbError `other` for a value that some database would not store unchanged
 */
export function parameterOf(value: unknown, number: number): Parameter {
  switch (typeof value) {
    case 'string':
      // PostgreSQL cannot store a NUL in text. UTF-8 cannot encode half of a surrogate pair, so it would become another character.
      if (value.includes('\0')) throw refused(number, 'a string with a NUL character')
      if (!value.isWellFormed()) throw refused(number, 'a string with half of a surrogate pair')
      return value
    case 'number':
      if (!Number.isFinite(value)) throw refused(number, String(value))
      return value
    case 'bigint':
      if (value < INT64_MIN || value > INT64_MAX) throw refused(number, 'an integer of more than 64 bits')
      return value
    case 'boolean':
      return value
    case 'object':
      if (value === null || value instanceof Uint8Array) return value
      if (value instanceof Date) {
        if (Number.isNaN(value.getTime())) throw refused(number, 'an invalid Date')
        return value.toISOString()
      }
      throw refused(number, Array.isArray(value) ? 'an array' : 'an object (JSON.stringify it)')
    default:
      throw refused(number, value === undefined ? 'undefined (null stands for no value)' : `a ${typeof value}`)
  }
}

function refused(number: number, what: string): DbError {
  return new DbError('other', `Parameter $${number} is ${what}`)
}

// Every database refuses these, with the same messages.

/** SQLite reads up to a NUL character and ignores the rest; PostgreSQL cannot be sent one. @throws DbError `syntax` */
export function refuseNul(sql: string): void {
  if (sql.includes('\0')) throw new DbError('syntax', 'The statement contains a NUL character')
}

/** For a statement that begins or ends a transaction. @param command its first word */
export function transactionControlRefused(command: string): DbError {
  return new DbError('other', `${command} cannot be sent: use db.transaction(async tx => …)`)
}

export function foreignPlaceholderRefused(placeholder: string): DbError {
  return new DbError('syntax', `Placeholders are $1, $2, …, not "${placeholder}"`)
}

/** @throws DbError `syntax` when a number below the highest has no placeholder */
export function refuseMissingParameter({ parameterCount, missingParameter }: SqlShape): void {
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

export interface SqlShape {
  /** The highest number of the placeholders `$1`, `$2`, … */
  parameterCount: number
  /** A number below it that no placeholder has, or null. */
  missingParameter: number | null
  /** The first word, in upper case; empty when there is none. */
  command: string
  /** The word after it. */
  second: string
  /** A placeholder that is not `$n`, or null. */
  foreignPlaceholder: string | null
  /** The same with `?` for each placeholder; null where one occurs twice, which SQLite then takes for two values. */
  byPlace: { sql: string; order: readonly number[] | null } | null
  /** It has LIKE or GLOB. */
  matchesPatterns: boolean
  /** A pattern stands in the statement itself that could keep them busy for long. */
  hasHeavyLiteral: boolean
  /** A LIMIT ends a scan of one table early. */
  hasLimit: boolean
}

const NUMBERED = /^\$([1-9]\d{0,4})$/

/** Reads the shape of one statement. */
export function shapeOf(sql: string, dialect: SqlDialect): SqlShape {
  const shape = { command: '', second: '', matchesPatterns: false, hasHeavyLiteral: false, hasLimit: false }
  let foreignPlaceholder: string | null = null
  const numbers: number[] = []
  let text = ''
  let end = 0
  const tokens = new SqlTokens(sql, dialect)
  while (tokens.next()) {
    if (tokens.kind === 'word') {
      const word = tokens.text.toUpperCase()
      if (shape.command === '') shape.command = word
      else shape.second ||= word
      if (word === 'LIKE' || word === 'GLOB') shape.matchesPatterns = true
      else if (word === 'LIMIT') shape.hasLimit = true
    } else if (tokens.kind === 'string') shape.hasHeavyLiteral ||= isHeavyPattern(tokens.text)
    else if (tokens.kind === 'placeholder') {
      const number = NUMBERED.exec(tokens.text)?.[1]
      if (number === undefined) foreignPlaceholder ??= tokens.text
      else numbers.push(Number(number))
      text += `${sql.slice(end, tokens.start)}?`
      end = tokens.end
    }
  }
  const used = new Set(numbers)
  const isInOrder = numbers.every((number, place) => number === place + 1)
  const order = isInOrder ? null : numbers.map((number) => number - 1)
  const byPlace = used.size === numbers.length ? { sql: text + sql.slice(end), order } : null
  const parameterCount = numbers.reduce((most, number) => Math.max(most, number), 0)
  let missingParameter: number | null = null
  for (let n = 1; n < parameterCount && missingParameter === null; n++) if (!used.has(n)) missingParameter = n
  return { ...shape, foreignPlaceholder, byPlace, parameterCount, missingParameter }
}

/** LIKE and GLOB take as many steps as text and pattern have characters, multiplied, and nothing can interrupt one of them. */
const MAX_PATTERN_CHARS = 256

/** True for a pattern that could keep LIKE or GLOB busy for long. */
export function isHeavyPattern(value: unknown): boolean {
  return typeof value === 'string' && value.length > MAX_PATTERN_CHARS && /[%*]/.test(value)
}

/** A statement of a script, by the offsets of its first character and of what follows its last one. */
interface ScriptPart {
  start: number
  end: number
}

/** What may have a body: there a semicolon ends a statement of the body. */
const HAS_BODY = /^(?:TRIGGER|FUNCTION|PROCEDURE)$/
/** What may stand between `CREATE` and that. */
const OF_CREATE = /^(?:CREATE|OR|REPLACE|TEMP|TEMPORARY|CONSTRAINT)$/

/**
 * Where the statements of a script begin and end, for a message about one of them. The database itself splits what is run. Comments before a
 * statement are no part of it.
 */
export function statementsIn(script: string, dialect: SqlDialect): ScriptPart[] {
  const parts: ScriptPart[] = []
  let start = -1
  let end = 0
  /** Only words of `CREATE …` so far. */
  let isHead = false
  let hasBody = false
  /** Open blocks of a body: `BEGIN` and `CASE`, each with its `END`. */
  let depth = 0
  const tokens = new SqlTokens(script, dialect)
  while (tokens.next()) {
    const { kind, text } = tokens
    if (kind === 'comment') continue
    if (kind === 'mark' && text === ';' && depth === 0) {
      if (start >= 0) parts.push({ start, end })
      start = -1
      continue
    }
    const word = kind === 'word' ? text.toUpperCase() : ''
    if (start < 0) {
      start = tokens.start
      isHead = word === 'CREATE'
      hasBody = false
    }
    hasBody ||= isHead && HAS_BODY.test(word)
    isHead &&= OF_CREATE.test(word)
    if (hasBody && (word === 'BEGIN' || (depth > 0 && word === 'CASE'))) depth++
    else if (depth > 0 && word === 'END') depth--
    end = tokens.end
  }
  if (start >= 0) parts.push({ start, end })
  return parts
}

const CONTROL = new Set(['BEGIN', 'START', 'COMMIT', 'END', 'ROLLBACK', 'ABORT', 'SAVEPOINT', 'RELEASE'])

/** True for a statement that begins or ends a transaction or a part of one, by its first two words in upper case. */
export function isTransactionControl(command: string, second: string): boolean {
  return CONTROL.has(command) || (command === 'PREPARE' && second === 'TRANSACTION')
}

/** What a script's first statement that begins or ends a transaction begins with; null: it has none. */
export function controlIn(script: string, dialect: SqlDialect): string | null {
  for (const { start, end } of statementsIn(script, dialect)) {
    const tokens = new SqlTokens(script.slice(start, end), dialect)
    const [command, second] = [nextWord(tokens), nextWord(tokens)]
    if (isTransactionControl(command, second)) return CONTROL.has(command) ? command : `${command} ${second}`
  }
  return null
}

/** In upper case; empty for what is no word. */
function nextWord(tokens: SqlTokens): string {
  while (tokens.next()) if (tokens.kind !== 'comment') return tokens.kind === 'word' ? tokens.text.toUpperCase() : ''
  return ''
}

/** @param script of a migration @throws DbError `other` when it begins or ends a transaction */
export function refuseControl(script: string, dialect: SqlDialect): void {
  const command = controlIn(script, dialect)
  if (command === null) return
  throw new DbError('other', `it contains ${command}, but a migration runs in a transaction already`)
}
