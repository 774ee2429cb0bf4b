import type { SqlValue } from './db.ts'

/** SQL with its values, made by `` sql`…` ``: a statement, or a part of one. No text of a client can be one. */
export interface Sql {
  /** With the placeholders `$1, $2, …`. */
  readonly text: string
  /** What the placeholders stand for. */
  readonly values: readonly SqlValue[]
}

/** A condition that may be left out. */
export type Condition = Sql | false | null | undefined

/** Composes statements. A value that is put in becomes a parameter, a fragment becomes part of the text. */
export interface SqlTag {
  (strings: TemplateStringsArray, ...parts: ReadonlyArray<SqlValue | Sql>): Sql
  /** A name in quotes: `sql.id('items')`, `sql.id('items', 'price')`. */
  id(...names: string[]): Sql
  /** `($1, $2, …)`. @throws DbError `other` for an empty list, which SQL has not: use `sql.in` */
  list(values: ReadonlyArray<SqlValue | Sql>): Sql
  /** `column IN ($1, …)`; false for every row where the list is empty. @param column a name is put in quotes */
  in(column: string | Sql, values: readonly SqlValue[]): Sql
  /** `column NOT IN ($1, …)`; true for every row where the list is empty. */
  notIn(column: string | Sql, values: readonly SqlValue[]): Sql
  /** All of the conditions, each in parentheses; those that are false, null or undefined are left out. True where none is left. */
  and(conditions: readonly Condition[]): Sql
  /** One of the conditions. False where none is left. */
  or(conditions: readonly Condition[]): Sql
  /** The parts with a separator between them. @param separator SQL of your own. Default: a comma */
  join(parts: ReadonlyArray<SqlValue | Sql>, separator?: string): Sql
  /** `"a" = $1, "b" = $2` of an UPDATE; members that are undefined are left out. @throws DbError `other` where nothing is left */
  set(values: Readonly<Record<string, SqlValue | Sql | undefined>>): Sql
  /** `("a", "b") VALUES ($1, $2), …` of an INSERT. @throws DbError `other` without a row, or without a column */
  rows<Column extends string>(
    columns: readonly Column[],
    rows: ReadonlyArray<Readonly<Record<Column, SqlValue | Sql>>>,
  ): Sql
  /** A text as it is. Never with anything that came from a client. */
  raw(text: string): Sql
}
