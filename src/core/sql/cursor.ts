import type { SqlValue } from '../../contracts/db.ts'
import { HeddleError } from '../errors/catalogue.ts'
import { DbError } from '../errors/db-error.ts'

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
  let values: unknown
  try {
    values = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    throw refused
  }
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
