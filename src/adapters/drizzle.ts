/** Drizzle on the tool `db`, imported as `heddle/drizzle`. */
import { type DrizzleConfig, TransactionRollbackError } from 'drizzle-orm'
import { PgRemoteDatabase, PgRemoteSession, drizzle as pgProxy } from 'drizzle-orm/pg-proxy'
import { SQLiteRemoteSession, SqliteRemoteDatabase, drizzle as sqliteProxy } from 'drizzle-orm/sqlite-proxy'
import type { Db, Queryable, SqlValue, TransactionOptions, Tx } from '../contracts/db.ts'
import { DbError } from '../core/errors/catalogue.ts'
import { ROWS_AS_ARRAYS } from '../core/sql/fragment.ts'

type Schema = Record<string, unknown>

/** What a transaction has beside the query builder. */
export interface OfTransaction {
  /** Publishes an event that exists exactly when the rows do. */
  publish: Tx['publish']
  /** Ends the transaction without its rows. @throws TransactionRollbackError, always */
  rollback(): never
}

/** What the query builder has beside what is Drizzle's. */
export interface OfDb<Transaction> {
  /** The query builder on a transaction of `db`, of `context.commit` or of a transactional subscriber. */
  in(tx: Tx): Transaction
  /** `db.transaction`: called again when the database rolled it back because of another one. */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
}

export type SqliteTransaction<S extends Schema> = OfTransaction & SqliteRemoteDatabase<S>
export type PgTransaction<S extends Schema> = OfTransaction & PgRemoteDatabase<S>

/**
 * Drizzle's query builder for tables of `drizzle-orm/sqlite-core`. Make it once, in the constructor of a plugin.
 * @throws DbError `other` where `db` is no SQLite
 */
export function drizzleSqlite<S extends Schema = Record<string, never>>(
  db: Db,
  config: DrizzleConfig<S> = {},
): OfDb<SqliteTransaction<S>> & SqliteRemoteDatabase<S> {
  requireDialect(db, 'sqlite', 'drizzlePg')
  const orm = sqliteProxy<S>(sqliteClient(db), config) as unknown as Inner & SqliteRemoteDatabase<S>
  // The tool takes $1, and not ?.
  orm.dialect.escapeParam = (index) => `$${index + 1}`
  const options = { ...orm.session }
  return onDb(db, orm, (tx) => {
    const session = new SQLiteRemoteSession(
      sqliteClient(tx),
      orm.dialect as never,
      schemaOf(orm) as never,
      undefined,
      options,
    )
    return new SqliteRemoteDatabase('async', orm.dialect as never, session as never, schemaOf(orm) as never)
  }) as unknown as OfDb<SqliteTransaction<S>> & SqliteRemoteDatabase<S>
}

/**
 * Drizzle's query builder for tables of `drizzle-orm/pg-core`. Make it once, in the constructor of a plugin.
 * @throws DbError `other` where `db` is no PostgreSQL
 */
export function drizzlePg<S extends Schema = Record<string, never>>(
  db: Db,
  config: DrizzleConfig<S> = {},
): OfDb<PgTransaction<S>> & PgRemoteDatabase<S> {
  requireDialect(db, 'postgres', 'drizzleSqlite')
  const orm = pgProxy<S>(pgClient(db), config) as unknown as Inner & PgRemoteDatabase<S>
  const options = { ...orm.session }
  return onDb(db, orm, (tx) => {
    const session = new PgRemoteSession(pgClient(tx), orm.dialect as never, schemaOf(orm) as never, options)
    return new PgRemoteDatabase(orm.dialect as never, session as never, schemaOf(orm) as never)
  }) as unknown as OfDb<PgTransaction<S>> & PgRemoteDatabase<S>
}

/** Members of a database of Drizzle that its types do not show. */
interface Inner {
  dialect: { escapeParam(index: number): string }
  session: { logger: never; cache: never }
  _: { schema: object | undefined }
}

/** The relations, which are worked out once: `_` has what the constructors take. */
const schemaOf = ({ _ }: Inner): object | undefined => (_.schema === undefined ? undefined : _)

function onDb(db: Db, orm: Inner, bind: (tx: Tx) => object): object {
  const inTx = (tx: Tx): object => Object.assign(bind(tx), { publish: tx.publish, rollback, transaction: refuseNested })
  return Object.assign(orm, {
    in: inTx,
    transaction: (work: (tx: object) => Promise<unknown>, options?: TransactionOptions) =>
      db.transaction((tx) => work(inTx(tx)), options),
  })
}

function rollback(): never {
  throw new TransactionRollbackError()
}

async function refuseNested(): Promise<never> {
  throw new DbError('other', 'A transaction of db has no transactions in it')
}

function requireDialect(db: Db, dialect: Db['dialect'], other: string): void {
  if (db.dialect !== dialect) throw new DbError('other', `The tool db speaks ${db.dialect}: use ${other}`)
}

/** Drizzle finds columns by their places: two of them may have one name. */
const sqliteClient = (queryable: Queryable) => async (sql: string, params: SqlValue[], method: string) => {
  if (method === 'run') return queryable.execute(sql, params)
  const { rows } = await queryable.execute(ROWS_AS_ARRAYS + sql, params)
  return { rows: (method === 'get' ? rows[0] : rows) as never }
}

const pgClient = (queryable: Queryable) => (sql: string, params: SqlValue[], method: string) =>
  queryable.execute(method === 'all' ? ROWS_AS_ARRAYS + sql : sql, params)
