/** Kysely on the tool `db`, imported as `heddle/kysely`. */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Expression,
  type ExpressionBuilder,
  Kysely,
  type KyselyConfig,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type SelectQueryBuilder,
  type SqlBool,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type Transaction,
  type TransactionBuilder,
} from 'kysely'
import type { Db, Queryable, SqlValue, TransactionOptions, Tx } from '../contracts/db.ts'
import { type Key, type KeysetOptions, type KeysetPage, keysOf, lastOfCursor, pageOf } from '../core/sql/keyset.ts'

interface QueryPageOptions<T> extends Omit<KeysetOptions<T>, 'rows'> {
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

type KyselyOptions = Omit<KyselyConfig, 'dialect'>

/** A transaction of Kysely that is one of `db`: what it publishes exists exactly when its rows do. */
interface KyselyTransaction<Schema> extends Transaction<Schema> {
  publish: Tx['publish']
}

/**
 * Kysely's query builder on the tool `db`, on whatever database that is. Make it once, in the constructor of a plugin.
 * @param options of Kysely, for example plugins
 */
export function kysely<Schema>(db: Db, options: KyselyOptions = {}): KyselyOnDb<Schema> {
  return new KyselyOnDb<Schema>(db, options)
}

class KyselyOnDb<Schema> extends Kysely<Schema> {
  readonly #db: Db
  readonly #options: KyselyOptions

  constructor(db: Db, options: KyselyOptions) {
    super({ ...options, dialect: new DbDialect(db.dialect, db) })
    this.#db = db
    this.#options = options
  }

  /** The query builder on a transaction of `db`, of `context.commit` or of a transactional subscriber. */
  in(tx: Tx): KyselyTransaction<Schema> {
    return new KyselyOnTx<Schema>(tx, this.#db.dialect, this.#options) as unknown as KyselyTransaction<Schema>
  }

  /**
   * `execute(work)` is `db.transaction(tx => work(kysely.in(tx)))`: called again when the database rolled it back because of another one.
   * `db` refuses an isolation level that it does not have.
   */
  override transaction(): DbTransactionBuilder<Schema> {
    const options: Record<string, unknown> = {}
    const builder = {
      execute: <T>(work: (transaction: KyselyTransaction<Schema>) => Promise<T>): Promise<T> =>
        this.#db.transaction((tx) => work(this.in(tx)), options as TransactionOptions),
      setAccessMode: (mode: string) => {
        options.readOnly = mode === 'read only'
        return builder
      },
      setIsolationLevel: (level: string) => {
        options.isolation = level
        return builder
      },
    }
    return builder as unknown as DbTransactionBuilder<Schema>
  }
}

/** As Kysely has it, and its transactions can publish. */
interface DbTransactionBuilder<Schema> extends TransactionBuilder<Schema> {
  execute<T>(work: (transaction: KyselyTransaction<Schema>) => Promise<T>): Promise<T>
}

class KyselyOnTx<Schema> extends Kysely<Schema> {
  readonly publish: Tx['publish']

  constructor(tx: Tx, dialect: Db['dialect'], options: KyselyOptions) {
    super({ ...options, dialect: new DbDialect(dialect, tx) })
    this.publish = tx.publish
  }

  override get isTransaction(): boolean {
    return true
  }

  override transaction(): TransactionBuilder<Schema> {
    throw new Error('A transaction of db has no transactions in it')
  }
}

/** `$1` as the tool wants it. */
class NumberedSqliteCompiler extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return `$${this.numParameters}`
  }
}

class DbDialect implements Dialect {
  readonly #isSqlite: boolean
  readonly #queryable: Queryable

  constructor(dialect: Db['dialect'], queryable: Queryable) {
    this.#isSqlite = dialect === 'sqlite'
    this.#queryable = queryable
  }

  createDriver = (): Driver => new DbDriver(this.#queryable)
  createQueryCompiler = () => (this.#isSqlite ? new NumberedSqliteCompiler() : new PostgresQueryCompiler())
  createAdapter = () => (this.#isSqlite ? new SqliteAdapter() : new PostgresAdapter())
  // biome-ignore lint/suspicious/noExplicitAny: as Kysely declares it
  createIntrospector = (kysely: Kysely<any>) =>
    this.#isSqlite ? new SqliteIntrospector(kysely) : new PostgresIntrospector(kysely)
}

const NO_CONTROL =
  'The tool db begins and ends transactions: use transaction().execute(…), or in(tx) with db.transaction'

/** The tool has the connections: this one sends each statement to it. */
class DbDriver implements Driver, DatabaseConnection {
  readonly #queryable: Queryable

  constructor(queryable: Queryable) {
    this.#queryable = queryable
  }

  async executeQuery<Row>({ sql, parameters, query }: CompiledQuery): Promise<QueryResult<Row>> {
    const { rowCount, rows } = await this.#queryable.execute<Row>(sql, parameters as readonly SqlValue[])
    return query.kind === 'SelectQueryNode' ? { rows } : { rows, numAffectedRows: BigInt(rowCount) }
  }

  // biome-ignore lint/correctness/useYield: it only refuses
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error('The tool db does not stream rows: read pages, for example with keysetPage')
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return this
  }

  async beginTransaction(): Promise<never> {
    throw new Error(NO_CONTROL)
  }

  async commitTransaction(): Promise<never> {
    throw new Error(NO_CONTROL)
  }

  async rollbackTransaction(): Promise<void> {}
  async releaseConnection(): Promise<void> {}
  async init(): Promise<void> {}
  async destroy(): Promise<void> {}
}
