// Pages by their last row, and cursors.
import type { Queryable, Row, Sql, SqlValue } from '../../contracts/db.ts'
import { DbError, HeddleError } from '../errors/catalogue.ts'
import { readable } from '../errors/description.ts'
import { sql } from './fragment.ts'

/** A column that orders rows, ascending unless told. */
export type KeysetColumn<Name extends string = string> = Name | { column: Name; direction: 'asc' | 'desc' }

export interface KeysetPage<T> {
  rows: T[]
  /** For the page after this one; null on the last page. */
  next: string | null
}

/** A column that orders rows, with its direction. */
export interface Key {
  column: string
  direction: 'asc' | 'desc'
}

/** Longest cursor, in characters: a key of an index is shorter on both databases. */
const CURSOR_MAX_LENGTH = 8192

/** @throws DbError `other` without a column, or for a limit that is none */
export function keysOf(orderBy: readonly KeysetColumn[], limit: number): Key[] {
  if (orderBy.length === 0) throw new DbError('other', 'A page needs a column to order by')
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new DbError('other', 'The limit of a page is a whole number from 1')
  return orderBy.map((key) => (typeof key === 'string' ? { column: key, direction: 'asc' } : key))
}

/** The values by which the page before ended; null for the first page. @throws HTTP_BAD_REQUEST for a cursor that is none of this order */
export function lastOfCursor(cursor: string | null | undefined, keys: readonly Key[]): SqlValue[] | null {
  return cursor === undefined || cursor === null || cursor === '' ? null : valuesOfCursor(cursor, keys.length)
}

/** @param found the rows of the page, and one more where another page follows */
export function pageOf<T extends object>(found: T[], keys: readonly Key[], limit: number): KeysetPage<T> {
  if (found.length <= limit) return { rows: found, next: null }
  const rows = found.slice(0, limit)
  return { rows, next: cursorOf(rows.at(-1) as Record<string, unknown>, keys) }
}

function cursorOf(row: Record<string, unknown>, keys: readonly Key[]): string {
  const values = keys.map(({ column }) => {
    const value = row[column]
    if (value === undefined || value === null) {
      throw new DbError('other', `A page is ordered by ${column}, which a row does not have`)
    }
    if (typeof value === 'bigint') return { integer: String(value) }
    if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('base64') }
    return value
  })
  return Buffer.from(JSON.stringify(values)).toString('base64url')
}

function valuesOfCursor(cursor: string, count: number): SqlValue[] {
  const refused = new HeddleError('HTTP_BAD_REQUEST', 'The cursor is not one of this list')
  if (cursor.length > CURSOR_MAX_LENGTH) throw refused
  const values: unknown = readable(() => JSON.parse(Buffer.from(cursor, 'base64url').toString()))
  if (!Array.isArray(values) || values.length !== count) throw refused
  return values.map((value) => {
    if (typeof value === 'object' && value !== null) {
      if (typeof value.integer === 'string' && /^-?\d{1,19}$/.test(value.integer)) return BigInt(value.integer)
      if (typeof value.bytes === 'string') return Buffer.from(value.bytes, 'base64')
      throw refused
    }
    if (value === null) throw refused
    return value as string | number | boolean
  })
}

export interface KeysetOptions<T = Row> {
  /** A query without ORDER BY and LIMIT, made by `` sql`…` ``. */
  rows: Sql
  /** Columns of the query, none of them NULL, which together are unique: the last one is usually the primary key. */
  orderBy: ReadonlyArray<KeysetColumn<Extract<keyof T, string>>>
  /** Rows of a page. */
  limit: number
  /** `next` of the page before, as the client sends it; undefined, null or empty for the first page. */
  after?: string | null | undefined
}

/**
 * One page of a query, found by the last row of the page before it: by an index, page 1000 is as fast as page 1, and rows that come or go
 * meanwhile shift nothing. The cursor holds the values of `orderBy`, which clients can read.
 * @throws HTTP_BAD_REQUEST for a cursor that is none of this order; DbError
 */
export async function keysetPage<T extends object = Row>(
  db: Pick<Queryable, 'query'>,
  { rows, orderBy, limit, after }: KeysetOptions<T>,
): Promise<KeysetPage<T>> {
  const keys = keysOf(orderBy, limit)
  const last = lastOfCursor(after, keys)
  const order = sql.join(keys.map(({ column, direction }) => sql`${sql.id(column)} ${DIRECTIONS[direction]}`))
  const where = last === null ? sql.raw('') : sql`WHERE ${behind(keys, last)} `
  // One row more than the page has: it tells whether another page follows.
  const found = await db.query<T>(
    sql`SELECT * FROM (${rows}) AS page ${where}ORDER BY ${order} LIMIT ${sql.raw(String(limit + 1))}`,
  )
  return pageOf(found, keys, limit)
}

const DIRECTIONS = { asc: sql.raw('ASC'), desc: sql.raw('DESC') }

/** The rows behind the last one: greater in the first column, or the same there and greater in the second, and so on. */
function behind(keys: readonly Key[], last: readonly SqlValue[]): Sql {
  const [{ column, direction }, ...others] = keys as [Key, ...Key[]]
  const name = sql.id(column)
  const [value, ...values] = last as [SqlValue, ...SqlValue[]]
  const beyond = sql`${name} ${sql.raw(direction === 'asc' ? '>' : '<')} ${value}`
  if (others.length === 0) return beyond
  // The first comparison alone is what an index can use.
  const from = sql`${name} ${sql.raw(direction === 'asc' ? '>=' : '<=')} ${value}`
  return sql`${from} AND (${beyond} OR ${behind(others, values)})`
}
