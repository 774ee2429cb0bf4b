// One prepared statement with its values.

import type Database from 'better-sqlite3'
import type { Row } from '../../contracts/db.ts'
import { ROWS_AS_ARRAYS } from '../../core/sql/fragment.ts'
import type { Outcome } from '../../stores/sql/database.ts'
import {
  checkCount,
  foreignPlaceholderRefused,
  isTransactionControl,
  parameterOf,
  refuseMissingParameter,
  refuseNul,
  shapeOf,
  transactionControlRefused,
} from '../../stores/sql/statement.ts'
import { SQLITE_DIALECT } from '../../stores/sql/tokens.ts'
import { Weigher } from './weigher.ts'

type Bound = string | number | bigint | Uint8Array | null

/** Integers that occur often, as better-sqlite3 takes them. */
const SMALL = Array.from({ length: 1024 }, (_, n) => BigInt(n))

/**
 * The values that better-sqlite3 binds, one for each placeholder in the order of the text: booleans as 1 and 0, dates as ISO 8601 UTC.
 * @param expected how many values the statement takes
 * @param order the places of the values, where they do not stand in the text in their own order
 * @throws DbError `other` for a wrong number of values, and for a value that some database would not store unchanged
 */
function bindingsByPlace(
  params: readonly unknown[],
  expected: number,
  order: readonly number[] | null,
): readonly Bound[] {
  checkCount(params, expected)
  const bound: Bound[] = []
  if (order === null) for (let i = 0; i < expected; i++) bound.push(bind(params[i], i + 1))
  else for (const place of order) bound.push(bind(params[place], place + 1))
  return bound
}

/** The same for a statement in which a placeholder occurs twice: by the names `$1, $2, …`. */
function bindingsByName(params: readonly unknown[], expected: number): Record<number, Bound> {
  checkCount(params, expected)
  const bound: Record<number, Bound> = {}
  for (let i = 0; i < expected; i++) bound[i + 1] = bind(params[i], i + 1)
  return bound
}

function bind(value: unknown, number: number): Bound {
  const parameter = parameterOf(value, number)
  if (typeof parameter === 'boolean') return parameter ? 1 : 0
  // better-sqlite3 binds every number as REAL: 5 in a TEXT column would become '5.0', and 5 / 2 would be 2.5.
  if (typeof parameter === 'number' && Number.isSafeInteger(parameter)) return SMALL[parameter] ?? BigInt(parameter)
  return parameter
}

// In a transaction these fail or have no effect.
const SOLITARY = new Set(['VACUUM', 'PRAGMA', 'ATTACH', 'DETACH'])
/** What others in the same commit may follow. A definition or a PRAGMA may change what the constraints of the rest mean. */
const SHARING = new Set(['SELECT', 'WITH', 'VALUES', 'INSERT', 'REPLACE', 'UPDATE', 'DELETE'])

/**
 * One prepared statement of one connection.
 *
 * Integers come back as numbers, beyond 2^53 - 1 as bigint. Columns declared BOOLEAN come back as true and false.
 */
export class Statement {
  /** False for a statement that needs the write lock. */
  readonly readonly: boolean
  /** It cannot run in one transaction with others. */
  readonly solitary: boolean
  /** Others may follow it in its commit. */
  readonly shares: boolean
  /** It makes room. */
  readonly deletes: boolean
  readonly #prepared: Database.Statement
  readonly #weigher: Weigher
  readonly #parameterCount: number
  /** False for a statement whose values are bound by name, which takes three times as long. */
  readonly #isByPlace: boolean
  readonly #order: readonly number[] | null
  /** Integers arrive as bigint, which is slower but exact. A read switches to it for good when a value was too large for a number. */
  #exact: boolean
  /** Rows are arrays, for the libraries on top of the tool. */
  readonly #hasArrays: boolean
  #columnCount = 0
  #booleans: string[] = []

  /** @throws DbError `syntax` for placeholders other than `$n`, `other` for transaction control */
  constructor(prepared: Database.Statement, sql: string) {
    refuseNul(sql)
    const shape = shapeOf(sql, SQLITE_DIALECT)
    if (isTransactionControl(shape.command, '')) throw transactionControlRefused(shape.command)
    if (shape.foreignPlaceholder !== null) throw foreignPlaceholderRefused(shape.foreignPlaceholder)
    refuseMissingParameter(shape)
    const byPlace = namesParameters(prepared) ? null : shape.byPlace
    this.#isByPlace = byPlace !== null
    this.#order = byPlace?.order ?? null
    this.#prepared = byPlace === null || byPlace.sql === sql ? prepared : prepared.database.prepare(byPlace.sql)
    this.#parameterCount = shape.parameterCount
    this.solitary = SOLITARY.has(shape.command)
    this.shares = SHARING.has(shape.command)
    this.deletes = shape.command === 'DELETE'
    this.readonly = prepared.readonly && shape.command !== 'ATTACH' && shape.command !== 'DETACH'
    this.#weigher = new Weigher(prepared.database, sql, shape)
    // A write cannot be repeated to read its rows again.
    this.#exact = prepared.reader && !prepared.readonly
    if (this.#exact) this.#prepared.safeIntegers(true)
    this.#hasArrays = prepared.reader && sql.startsWith(ROWS_AS_ARRAYS)
    if (this.#hasArrays) this.#prepared.raw(true)
  }

  /** It may run for longer than a thread should stand still: nothing in this process can end it. */
  isHeavy(params: readonly unknown[]): boolean {
    return this.#weigher.isHeavy(params)
  }

  /** Runs it to its end. @throws the driver's error, or DbError `other` for invalid parameters */
  run(params: readonly unknown[]): Outcome {
    const bound = this.#isByPlace
      ? bindingsByPlace(params, this.#parameterCount, this.#order)
      : bindingsByName(params, this.#parameterCount)
    if (!this.#prepared.reader) return { rowCount: this.#prepared.run(bound).changes, rows: [] }
    let rows = this.#prepared.all(bound) as Row[]
    if (rows.length === 0) return { rowCount: 0, rows }
    if (!this.#exact && rows.some(hasUnsafeNumber)) {
      this.#exact = true
      this.#prepared.safeIntegers(true)
      rows = this.#prepared.all(bound) as Row[]
    }
    if (this.#exact) for (const row of rows) narrow(row)
    if (!this.#hasArrays) this.#decodeBooleans(rows)
    return { rowCount: rows.length, rows }
  }

  #decodeBooleans(rows: Row[]): void {
    // Looked up again when the number of columns has changed.
    const columnCount = Object.keys(rows[0] ?? {}).length
    if (columnCount !== this.#columnCount) {
      this.#columnCount = columnCount
      this.#booleans = this.#prepared
        .columns()
        .filter((column) => /^bool(?:ean)?$/i.test(column.type ?? ''))
        .map((column) => column.name)
    }
    for (const name of this.#booleans) {
      for (const row of rows) if (row[name] === 1 || row[name] === 0) row[name] = row[name] === 1
    }
  }
}

/** A column without a name of its own has the text of its expression for a name, and a placeholder keeps its number there. */
function namesParameters(prepared: Database.Statement): boolean {
  return prepared.reader && prepared.columns().some(({ name }) => name.includes('$'))
}

function hasUnsafeNumber(row: Row): boolean {
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'number' && (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER)) return true
  }
  return false
}

function narrow(row: Row): void {
  for (const name in row) {
    const value = row[name]
    if (typeof value === 'bigint' && value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER) {
      row[name] = Number(value)
    }
  }
}
