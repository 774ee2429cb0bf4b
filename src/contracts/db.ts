/** A value that both databases store and return alike. Dates, booleans and bytes: see the contract suite. */
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
 * Statements. Placeholders are `$1, $2, …`. Each rejects with a `DbError` that carries `kind`.
 * Statements that are sent without waiting for each other may run in any order, but for those of one `tx`.
 *
 * A parameter is stored as its column wants it; where nothing around it tells a type (`SELECT $1`), write `CAST($1 AS INTEGER)`.
 * Integers and sums come back as numbers, beyond 2^53 - 1 as bigint; NUMERIC as a number, points in time as ISO 8601 text in UTC,
 * JSON as text, bytes as Buffer. A truth value that is no BOOLEAN column is true on one database and 1 on another.
 */
export interface Queryable {
  /** All rows. */
  query<T = Row>(sql: string, params?: readonly SqlValue[]): Promise<T[]>
  /** The first row, or null. */
  queryOne<T = Row>(sql: string, params?: readonly SqlValue[]): Promise<T | null>
  /** Rows changed, and the rows of a RETURNING clause. */
  execute<T = Row>(sql: string, params?: readonly SqlValue[]): Promise<{ rowCount: number; rows: T[] }>
}

/** The relational database. */
export interface Db extends Queryable {
  /**
   * Runs `work` in a transaction: committed when it resolves, rolled back when it rejects. Transactions are serializable.
   * No statement outside `tx` ever joins it. `tx` is dead once `work` has settled.
   * `work` is run again where the database could settle a collision with another transaction only by rolling this one back:
   * it should do nothing but send statements. After 5 s of that it rejects with `serialization`.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>
  /** True when the database answers. */
  healthCheck(): Promise<boolean>
}
