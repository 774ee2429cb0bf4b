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

/** Statements. Placeholders are `$1, $2, …`. Each rejects with a `DbError` that carries `kind`. */
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
   * Runs `work` in a transaction: committed when it resolves, rolled back when it rejects.
   * No statement outside `tx` ever joins it. `tx` is dead once `work` has settled.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>
  /** True when the database answers. */
  healthCheck(): Promise<boolean>
}
