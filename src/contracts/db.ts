// The tool `db`: statements, transactions, composed SQL.
import type { DbError } from '../core/errors/catalogue.ts'
import type { CancelFilter, CancelOptions, EventName, Published, PublishOptions } from './events.ts'

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

/**
 * What goes with one run of a transaction's function, for example events that are stored with its rows. Each run has its own: a function
 * that is run again gets another one.
 */
export interface TransactionCompanion {
  /** What the function gets: the `tx` with more methods. */
  extend(tx: Queryable): Queryable
  /** The `tx` as it was before: for statements of the runtime itself, which are not measured. Null until then. */
  readonly own: Queryable | null
  /** Work of its own that ends before its last statements. */
  readonly pending?: Promise<unknown> | undefined
  /** False: it has no statements of its own. */
  readonly hasLastStatements: boolean
  /**
   * Statements that run last, after the function has resolved and before the transaction can commit. The first that fails rolls it back.
   * @param others of the same thread, which share the commit: with their statements, in their order
   */
  lastStatements(others?: readonly TransactionCompanion[]): readonly LastStatement[]
  /** What the caller gets when one of them has failed. Default: the error. */
  refusal?(error: DbError): Error
  /** The commit has succeeded (with SQLITE_SYNCHRONOUS=full, on the disk, too). Called right before the promise of `transaction` resolves. */
  committed(): void
  /** Nothing of this run is stored. Another run may follow, or the promise of `transaction` rejects right afterwards. */
  rolledBack(): void
  /** The outcome of the commit is not known, or not that it is on the disk. The promise of `transaction` rejects with the error. */
  unknown(error: DbError): void
}

export interface LastStatement {
  readonly sql: string
  readonly params: readonly SqlValue[]
}

/** A value that both databases store and return in the same way. For dates, booleans and bytes see `Queryable`. */
export type SqlValue = string | number | bigint | boolean | null | Uint8Array | Date
export type Row = Record<string, unknown>

/**
 * Sends SQL statements: texts with the placeholders `$1, $2, …`, or what `` db.sql`…` `` has made, which has its values in it. A statement that fails rejects with a `DbError`; its `kind` says why.
 * Statements that are sent without waiting for each other may run in any order. Those of one `tx` run in the order in which they were sent.
 *
 * The column decides how a parameter is stored. Where nothing tells the type (`SELECT $1`), write `CAST($1 AS INTEGER)`.
 * Integers and sums come back as numbers, beyond 2^53 - 1 as bigint; NUMERIC as a number, or as text where a number would have other digits; points in time as ISO 8601 text in UTC,
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
  /**
   * Takes events back with the commit, with `causedToo` those that they have caused as well: those that wait, those of this transaction, and the running ones, whose signals are aborted after it. Events of
   * Redis Streams are not meant. In the end they are gone exactly when the rows of the transaction are there.
   * @returns how many deliveries
   * @throws EVENT_NAME_INVALID, EVENT_OPTIONS_INVALID, EVENT_BUS_UNAVAILABLE
   */
  cancel(what: CancelFilter, options?: CancelOptions): Promise<number>
}

/** What a transaction sees of others, and whether it may write. */
export interface TransactionOptions {
  /**
   * Default `serializable`: as if transactions ran one after another. `read committed`: each statement sees what is committed when it begins, and
   * waits for rows that others change; the transaction is run again only after a deadlock. SQLite is always serializable.
   */
  isolation?: 'serializable' | 'repeatable read' | 'read committed'
  /** True: a statement that writes is refused. Default false. */
  readOnly?: boolean
}

/** The relational database. */
export interface Db extends Queryable {
  /** Composes statements; `sql` of `heddle` is the same. */
  readonly sql: SqlTag
  /** The SQL that the database speaks. */
  readonly dialect: 'sqlite' | 'postgres'
  /**
   * Runs `work` in a transaction, which is committed when `work` resolves and rolled back when it rejects.
   * Only statements sent through `tx` belong to it. `tx` takes no more statements once `work` has settled.
   * When the database rolls the transaction back because it conflicts with another one, `work` is called again, for up to 15 s;
   * then it rejects with `DB_CONTENDED`. On SQLite it is called again by itself when the commit that it shared with others failed. So `work` should do nothing but send statements.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>
  /** True when the database answers. */
  healthCheck(): Promise<boolean>
}
