import type { Expression, ExpressionBuilder, Kysely, SelectQueryBuilder, SqlBool } from 'kysely'
import type { SqlValue } from '../contracts/db.ts'
import { type Key, type KeysetPage, keysOf, lastOfCursor, pageOf } from '../core/sql/cursor.ts'
import type { KeysetOptions } from '../core/sql/keyset.ts'

export interface QueryPageOptions<T> extends Omit<KeysetOptions<T>, 'rows'> {
  /** A query without orderBy and limit. */
  // biome-ignore lint/suspicious/noExplicitAny: of whatever tables
  rows: SelectQueryBuilder<any, any, T>
}

/** The query as a table of its own: its columns are those that it selects, also under other names. */
// biome-ignore lint/suspicious/noExplicitAny: the columns of a query, whatever they are
type Page = { page: any }

/**
 * `keysetPage` of `heddle` for a query of Kysely.
 * @param builder of the plugin, or of a transaction
 * @throws HTTP_BAD_REQUEST for a cursor that is none of this order; DbError
 */
export async function keysetPage<T extends object>(
  // biome-ignore lint/suspicious/noExplicitAny: of whatever tables
  builder: Kysely<any>,
  { rows, orderBy, limit, after }: QueryPageOptions<T>,
): Promise<KeysetPage<T>> {
  const keys = keysOf(orderBy, limit)
  const last = lastOfCursor(after, keys)
  const all = builder.selectFrom(rows.as('page')) as unknown as SelectQueryBuilder<Page, 'page', object>
  let page = all.selectAll()
  if (last !== null) page = page.where((expression) => behind(expression, keys, last))
  for (const { column, direction } of keys) page = page.orderBy(column, direction)
  // One row more than the page has: it tells whether another page follows.
  return pageOf((await page.limit(limit + 1).execute()) as T[], keys, limit)
}

/** The rows behind the last one: greater in the first column, or the same there and greater in the second, and so on. */
function behind(
  expression: ExpressionBuilder<Page, 'page'>,
  keys: readonly Key[],
  last: readonly SqlValue[],
): Expression<SqlBool> {
  const [{ column, direction }, ...others] = keys as [Key, ...Key[]]
  const [value, ...values] = last
  const beyond = expression(column, direction === 'asc' ? '>' : '<', value)
  if (others.length === 0) return beyond
  // The first comparison alone is what an index can use.
  const from = expression(column, direction === 'asc' ? '>=' : '<=', value)
  return from.and(beyond.or(behind(expression, others, values)))
}
