import type { PublishOptions } from './event-bus.ts'
import type { EventName, Published } from './event-contracts.ts'
import type { Sql, SqlTag } from './sql.ts'

/** A value that both databases store and return in the same way. For dates, booleans and bytes see `Queryable`. */
export type SqlValue = string | number | bigint | boolean | null | Uint8Array | Date
export type Row = Record<string, unknown>

/** Why a statement failed; the same on every database. */
export type DbErrorKind =
  | 'unique_violation'
  | 'foreign_key_violation'
  | 'not_null_violation'
  | 'check_violation'
  | 'serialization'
  | 'timeout'
  | 'unavailable'
  | 'syntax'
  | 'other'

/**
 * Sends SQL statements: texts with the placeholders `$1, $2, …`, or what `` db.sql`…` `` has made, which has its values in it. A statement that fails rejects with a `DbError`; its `kind` says why.
 * Statements that are sent without waiting for each other may run in any order. Those of one `tx` run in the order in which they were sent.
 *
 * The column decides how a parameter is stored. Where nothing tells the type (`SELECT $1`), write `CAST($1 AS INTEGER)`.
 * Integers and sums come back as numbers, beyond 2^53 - 1 as bigint; NUMERIC as a number, points in time as ISO 8601 text in UTC,
 * JSON as text, bytes as Buffer. A truth value that does not come from a BOOLEAN column (`SELECT 1 = 1`) is true on PostgreSQL and 1 on SQLite.
 */
export interface Queryable {
  /** All rows. */
  query<T = Row>(sql: string | Sql, params?: readonly SqlValue[]): Promise<T[]>
  /** The first row, or null. */
  queryOne<T = Row>(sql: string | Sql, params?: readonly SqlValue[]): Promise<T | null>
  /** Rows changed, and the rows of a RETURNING clause. */
  execute<T = Row>(sql: string | Sql, params?: readonly SqlValue[]): Promise<{ rowCount: number; rows: T[] }>
}

/** A transaction. */
export interface Tx extends Queryable {
  /**
   * Publishes an event that exists exactly when the rows of the transaction do, whatever the event driver: it is stored in the same commit,
   * and delivered after it. A transaction that is rolled back has published nothing.
   * @returns the event's id
   * @throws EVENT_CONTRACT, EVENT_PAYLOAD_INVALID, EVENT_PAYLOAD_TOO_LARGE, EVENT_NAME_INVALID, EVENT_OPTIONS_INVALID, EVENT_BUS_FULL
   */
  publish<Name extends EventName>(event: Name, payload: Published<Name>, options?: PublishOptions): Promise<string>
}

/** The relational database. */
export interface Db extends Queryable {
  /** Composes statements; `sql` of `heddle` is the same. */
  readonly sql: SqlTag
  /** The SQL that the database speaks. */
  readonly dialect: 'sqlite' | 'postgres'
  /**
   * Runs `work` in a transaction, which is committed when `work` resolves and rolled back when it rejects. Transactions are serializable.
   * Only statements sent through `tx` belong to it. `tx` takes no more statements once `work` has settled.
   * When the database rolls the transaction back because it conflicts with another one, `work` is called again, for up to 5 s;
   * then it rejects with `serialization`. On SQLite it is called again by itself when the commit that it shared with others failed. So `work` should do nothing but send statements.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /** True when the database answers. */
  healthCheck(): Promise<boolean>
}
