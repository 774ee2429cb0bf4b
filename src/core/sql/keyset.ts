import type { Queryable, Row, SqlValue } from '../../contracts/db.ts'
import type { Sql } from '../../contracts/sql.ts'
import { type Key, type KeysetColumn, type KeysetPage, keysOf, lastOfCursor, pageOf } from './cursor.ts'
import { sql } from './fragment.ts'

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
