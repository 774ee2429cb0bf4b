// What a database does for the tool `db`, and its limits.

import type { Owner } from '../../contracts/common.ts'
import type {
  Db,
  Queryable,
  Row,
  Sql,
  SqlValue,
  TransactionCompanion,
  TransactionOptions,
  Tx,
} from '../../contracts/db.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import type { CallDetails, SpanAttributes } from '../../contracts/tracing.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { settled } from '../../core/schedule/waiting.ts'
import { isSql, sql } from '../../core/sql/fragment.ts'

// The same on every database, so that a plugin behaves alike on each.

/** Milliseconds that a statement or a transaction waits for its turn, or for a connection. */
export const WAIT_MS = 5000
/** Milliseconds without a statement after which a transaction is rolled back, because others wait for its locks. */
export const TRANSACTION_IDLE_MS = 10_000
/** Most statements and transactions of one thread that may wait at once. Further ones are refused with `unavailable`. */
export const MAX_WAITING = 65_536
/** Milliseconds for which closing waits for running statements. */
export const STOP_WAIT_MS = 2000

/** The result of a statement. */
export interface Outcome {
  /** Rows changed, or for a statement that returns rows their number. */
  rowCount: number
  rows: Row[]
}

/** Runs one statement. It may throw, too. */
type Run = (sql: string | Sql, params: readonly SqlValue[]) => Outcome | Promise<Outcome>

/** The methods for statements, made of one that runs them. They do not depend on `this`, which differs behind a proxy. */
export function queryable(run: Run): Queryable {
  return {
    query(sql, params = []) {
      return answered(run, sql, params, rowsOf) as Promise<never[]>
    },
    queryOne(sql, params = []) {
      return answered(run, sql, params, firstRowOf) as Promise<never>
    },
    execute(sql, params = []) {
      return answered(run, sql, params, resultOf) as Promise<{ rowCount: number; rows: never[] }>
    },
  }
}

const rowsOf = ({ rows }: Outcome): unknown => rows
const firstRowOf = ({ rows }: Outcome): unknown => rows[0] ?? null
const resultOf = ({ rowCount, rows }: Outcome): unknown => ({ rowCount, rows })

/** Not async, which would cost two more promises where the outcome is there already. */
function answered(
  run: Run,
  sql: string | Sql,
  params: readonly SqlValue[],
  answerOf: (outcome: Outcome) => unknown,
): Promise<unknown> {
  try {
    const outcome = run(sql, params)
    return outcome instanceof Promise ? outcome.then(answerOf) : settled(answerOf(outcome))
  } catch (thrown) {
    return Promise.reject(thrown)
  }
}

const LEVELS: readonly unknown[] = ['serializable', 'repeatable read', 'read committed']

/** What is wrong with the options of a transaction; null: nothing. */
export function optionsFault(options: unknown): string | null {
  if (typeof options !== 'object' || options === null) return 'The options of a transaction are an object'
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue
    if (name === 'isolation') {
      if (!LEVELS.includes(value)) return `isolation is one of ${LEVELS.join(', ')}, not ${String(value)}`
    } else if (name !== 'readOnly') return `A transaction has no option ${name}: isolation, readOnly`
    else if (typeof value !== 'boolean') return `readOnly is true or false, not ${String(value)}`
  }
  return null
}

export const READ_ONLY = 'The transaction is read-only'

const PUBLISHES_NOTHING: TransactionCompanion = {
  extend: (tx): Tx => ({
    ...tx,
    publish: () => Promise.reject(new DbError('other', `${READ_ONLY}: it publishes nothing`)),
    cancel: () => Promise.reject(new DbError('other', `${READ_ONLY}: it takes nothing back`)),
  }),
  own: null,
  hasLastStatements: false,
  lastStatements: () => [],
  committed: () => {},
  rolledBack: () => {},
  unknown: () => {},
}

/** The tool `db`, as far as it is the same on every database. */
export abstract class SqlDatabase implements Tool, Queryable {
  abstract readonly name: string
  abstract readonly dialect: Db['dialect']
  readonly query: Queryable['query']
  readonly queryOne: Queryable['queryOne']
  readonly execute: Queryable['execute']
  protected readonly runtime: ToolRuntime
  readonly #server: SpanAttributes

  /** @param server attributes of spans that name the database */
  constructor(runtime: ToolRuntime, server: SpanAttributes) {
    this.runtime = runtime
    this.#server = server
    const { query, queryOne, execute } = queryable((sql, params) => this.run(sql, params))
    this.query = query
    this.queryOne = queryOne
    this.execute = execute
  }

  /** Runs one statement. */
  protected abstract run(sql: string | Sql, params: readonly SqlValue[]): Promise<Outcome>

  /**
   * @param accompany makes what goes with each run of `work`
   * @param handler the function by whose source it is known what the transaction waits for, when `work` is one that many share; or the name of its route
   */
  abstract transaction<T>(
    work: (tx: Queryable) => Promise<T>,
    accompany?: () => TransactionCompanion,
    handler?: unknown,
    options?: TransactionOptions,
  ): Promise<T>

  abstract healthCheck(): Promise<boolean>

  /** The methods of the contract, including `healthCheck`, and nothing else. A plugin's transactions can publish events. */
  api(owner: Owner): Db {
    const accompany = (): TransactionCompanion => this.runtime.host.bus.beginTransaction(owner.name)
    return {
      query: this.query,
      queryOne: this.queryOne,
      execute: this.execute,
      // The companion makes the `tx` of each run a Tx.
      transaction: (work, options) => {
        const run = work as (tx: Queryable) => ReturnType<typeof work>
        if (options === undefined) return this.transaction(run, accompany)
        const fault = optionsFault(options)
        if (fault !== null) return Promise.reject(new DbError('other', fault))
        return this.transaction(run, options.readOnly ? () => PUBLISHES_NOTHING : accompany, undefined, options)
      },
      healthCheck: () => this.healthCheck(),
      dialect: this.dialect,
      // A getter, so that composing is not measured: it is no call of the database.
      get sql() {
        return sql
      },
    }
  }

  describeCall(method: string, args: readonly unknown[]): CallDetails {
    return describeDbCall(method, args, this.#server)
  }
}

/**
 * Literals of a statement, and comments, which may contain values: strings in single quotes, with escapes or between dollar signs, and
 * numbers that are not part of a placeholder or a name. Names in double quotes are matched too, and kept.
 */
const LITERAL =
  /"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\b[eE]'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$|(?<![\w$.])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g
const withoutLiterals = (sql: string): string =>
  sql.replace(LITERAL, (found) => (found.startsWith('"') ? found : /^(?:--|\/\*)/.test(found) ? ' ' : '?'))
const FIRST_WORD = /^\s*([A-Za-z]+)/

/**
 * What the span of a call shows: the statement with its placeholders, but no parameters.
 * Source: OpenTelemetry semantic conventions for database client spans.
 */
export function describeDbCall(method: string, args: readonly unknown[], server: SpanAttributes): CallDetails {
  if (method === 'publish') return { kind: 'producer' }
  const statement = isSql(args[0]) ? args[0].text : args[0]
  if (typeof statement !== 'string') return { kind: 'client', attributes: server }
  const text = withoutLiterals(statement)
  const operation = FIRST_WORD.exec(text)?.[1]
  const attributes: SpanAttributes = { ...server, 'db.query.text': text }
  if (operation !== undefined) attributes['db.operation.name'] = operation.toUpperCase()
  return { kind: 'client', attributes }
}
