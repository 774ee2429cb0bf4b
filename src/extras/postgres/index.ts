// The tool `db` on PostgreSQL, and the check that the tables of the runtime are nobody else's.
import type { Queryable, Sql, SqlValue, TransactionCompanion, TransactionOptions } from '../../contracts/db.ts'
import type { ToolRuntime } from '../../contracts/tool.ts'
import { causality } from '../../core/causality/context.ts'
import { DbError, HeddleError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'
import { valuesOf } from '../../core/sql/fragment.ts'
import type { MigrationDriver } from '../../stores/migrations/driver.ts'
import { migrateOrReport, PendingMigrations } from '../../stores/migrations/runner.ts'
import { type Outcome, SqlDatabase, STOP_WAIT_MS, WAIT_MS } from '../../stores/sql/database.ts'
import {
  CONNECTION_BUDGET_BYTES,
  ConnectionBudget,
  giveBackOfThread,
} from '../../transport/memory/connection-budget.ts'
import { type Access, accessOf } from './access.ts'
import { OwnConnection, PostgresConnection } from './connection.ts'
import { CONTENDED_MS, contended, Lines, ofOneFunction, TURN_LOCK_BYTES, TURN_LOCKS } from './contention.ts'
import { Execution, wireValues } from './execution.ts'
import {
  endsConnection,
  hasNotRun,
  isConflict,
  isDeadlock,
  isStalePlan,
  OPEN_AGAIN,
  sqlStateOf,
  toDbError,
} from './failure.ts'
import { PostgresMigrations } from './migration-driver.ts'
import { isShort, Pool, pooled, poolShare } from './pool.ts'
import { hasLostSession, probeSessions, rethrowSession } from './session.ts'
import { beginOf, CHECK, Statement, Statements } from './statement.ts'
import { Repeatable, runTransaction } from './transaction.ts'

/** Longest pause before a transaction is repeated for the second time and further ones, in milliseconds. */
const MAX_PAUSE_MS = 50

/** A procedure may have committed a part of its work before it failed. */
const MAY_COMMIT = /^\s*(?:CALL|DO)\b/i
/** A thread says once in so long that it has met another session, milliseconds. */
const DOUBT_MS = 1000

/**
 * The tool `db` on PostgreSQL. One instance per thread, each with its own connections.
 *
 * Statements that are sent without waiting for each other run at the same time, each on its own connection. Transactions are
 * serializable, as on SQLite, unless they ask for less. When two of them conflict, the database rolls one back, and it is repeated.
 */
export default class PostgresDb extends SqlDatabase {
  readonly name = 'db'
  readonly dialect = 'postgres'
  readonly #statements = new Statements((sql) =>
    this.runtime.log(
      'WARNING',
      `The test moves the time, but not that of PostgreSQL, which a statement asks for: give it the time as a parameter: ${sql.slice(0, 200)}`,
    ),
  )
  readonly #budgetMemory: SharedArrayBuffer
  readonly #pool: Pool
  readonly #lines: Lines
  /** Each run that was rolled back for another one counts as a failed call of `db.repeat`. */
  #repeats: { repeat(failure: DbError): void } | null = null
  /** Beside those of the pool. */
  readonly #own: OwnConnection
  /** Those of statements that may take any time. */
  readonly #apart = new Set<PostgresConnection>()
  readonly #access: Access
  /** On a connection of its own, for one channel. Undefined where no session is kept: nothing would be heard. */
  readonly listen: ((channel: string, told: (payload: string) => void) => () => void) | undefined
  #isProbed = false
  #doubtedMs = Number.NEGATIVE_INFINITY
  /** The probe of a doubt is under way. */
  #isProbing = false
  /** In the primary: why no session can be relied on. */
  #unready: string | null = null
  /** In the primary. */
  readonly #pending = new PendingMigrations()
  #stopped = false

  constructor(runtime: ToolRuntime) {
    const { settings, thread } = runtime
    super(runtime, {
      'db.system.name': 'postgresql',
      'db.namespace': settings.rdbDatabase,
      'server.address': settings.rdbHost,
      'server.port': settings.rdbPort,
    })
    this.#access = accessOf(settings, thread)
    this.#budgetMemory = runtime.sharedMemory('connections', CONNECTION_BUDGET_BYTES)
    const { rdbMaxPool, rdbMinPool, rdbStatementTimeoutMs, lanes } = settings
    this.#pool = new Pool({
      ...poolShare({ max: pooled(rdbMaxPool), min: rdbMinPool }, lanes, thread),
      budget: new ConnectionBudget(this.#budgetMemory, pooled(rdbMaxPool)),
      access: this.#access,
      statementTimeoutMs: rdbStatementTimeoutMs,
    })
    const locks = Array.from({ length: TURN_LOCKS }, (_, n) => runtime.sharedMemory(`turn-${n}`, TURN_LOCK_BYTES))
    this.#lines = new Lines(ofOneFunction(this.#pool.mostHeld), locks)
    this.#own = new OwnConnection(this.#access)
    if (settings.rdbPooler === 'none')
      this.listen = (channel, told) => {
        this.#own.listen(channel, told)
        return () => this.#own.close()
      }
  }

  /**
   * In the primary: migrates or reports what is pending. In a lane: begins to open connections, without waiting for them.
   * It may be called again after it has rejected.
   * @throws DbError `unavailable` or `timeout` when the server cannot be reached, DATABASE_FOREIGN, MIGRATION_INVALID
   */
  async boot(): Promise<void> {
    const { thread, settings } = this.runtime
    if (thread.kind === 'lane') return this.#pool.warm()
    const log = this.runtime.log.bind(this.runtime)
    if (isShort(pooled(settings.rdbMaxPool), settings.lanes)) {
      log(
        'WARNING',
        `RDB_MAX_POOL is ${settings.rdbMaxPool}, but each of ${settings.lanes + 1} threads needs a connection, and notifications one: up to ${settings.lanes + 2} are opened`,
      )
    }
    if (settings.rdbPooler === 'transaction') {
      log(
        'INFO',
        'RDB_POOLER=transaction: nothing is kept in sessions. Without LISTEN this process looks every second for what others have stored',
      )
    }
    const waiting = await this.migrating((driver) => migrateOrReport(driver, settings, log))
    this.#pending.watch(waiting, settings.domainsDir, (work) => this.migrating(work), log)
    await this.#compareWithServer()
  }

  /** Says at the start what would fail with the load: lanes that find no connection. */
  async #compareWithServer(): Promise<void> {
    const { rdbMaxPool, lanes, processes, nodeAppInstance = 0 } = this.runtime.settings
    const accepted = (await this.queryOne<{ most: number }>(ACCEPTED))?.most
    const opened = Math.max(rdbMaxPool, lanes + 2) * processes
    // One of several processes says it for all.
    if (accepted === undefined || accepted >= opened || nodeAppInstance % processes !== 0) return
    this.runtime.log(
      'WARNING',
      `PostgreSQL accepts ${accepted} connections of this user, and this service may open ${opened} (RDB_MAX_POOL of each process): lower RDB_MAX_POOL, or raise max_connections. A pool of a plugin's own comes on top, once for each lane`,
    )
  }

  /** @throws DATABASE_SESSION, DATABASE_ENCODING, DATABASE_FOREIGN, DbError */
  async requireOwn(): Promise<void> {
    if (!this.#isProbed) {
      await probeSessions(this.#access)
      this.#isProbed = true
    }
    await requireEncoding(this, this.runtime.settings).catch(rethrowSession)
    await requireOwnTables(this, this.runtime.settings).catch(rethrowSession)
  }

  async otherUser(): Promise<string | null> {
    const known = await this.queryOne("SELECT to_regclass('heddle_member') IS NOT NULL AS is_there")
    if (known?.is_there !== true) return null
    const found = await this.queryOne('SELECT replica FROM heddle_member WHERE until > clock_timestamp() LIMIT 1')
    return found === null ? null : `the process ${found.replica} works on this database`
  }

  /** Migrates on a connection of its own. @throws as `requireOwn` */
  async migrating<T>(work: (driver: MigrationDriver) => Promise<T>): Promise<T> {
    await this.requireOwn()
    const connection = await this.#pool.acquire()
    try {
      const driver = new PostgresMigrations(
        {
          // Never prepared, because the connection is reset between migrations.
          run: (sql, params) => connection.send(new Statement(sql, params.length), params),
          script: (sql) => connection.script(sql),
          renew: () => connection.renew(),
          keepsSession: connection.keepsSession,
          setLocal: this.#access.session.setLocal,
          get isClean() {
            return connection.isClean
          },
        },
        () => this.runtime.log('INFO', 'Another process migrates this database: waiting for it'),
      )
      return await work(driver)
    } finally {
      // A migration may have changed the settings of the connection.
      connection.close()
      this.#pool.release(connection)
    }
  }

  /** A lane and its connections have ended: their part of the limit is free again. */
  threadGone(threadId: number): void {
    giveBackOfThread(this.#budgetMemory, threadId)
  }

  protected override async run(sql: string | Sql, params: readonly SqlValue[]): Promise<Outcome> {
    const execution = await this.#send(sql, params)
    return execution.failure === null ? execution : this.#repair(execution)
  }

  /**
   * Waits at most 5 s for a connection (`timeout`). After 10 s without a statement it is rolled back (`timeout`).
   * When a statement fails, the whole transaction is rolled back. A transaction that the database rolled back because of a conflict
   * (`serialization`) is repeated, including `work`, for up to 15 s. Between two runs it holds no connection.
   * @param accompany makes what goes with each run of `work`
   */
  async transaction<T>(
    work: (tx: Queryable) => Promise<T>,
    accompany?: () => TransactionCompanion,
    _handler?: unknown,
    options: TransactionOptions = {},
  ): Promise<T> {
    const endMs = performance.now() + CONTENDED_MS
    const line = this.#lines.of(causality.getStore()?.origin?.handler ?? '')
    for (let run = 1; ; run++) {
      const isAgain = run > 1
      const turn = line.enter(isAgain, endMs)
      if (turn !== null) await turn
      const isAlone = isAgain || line.isWary
      let begunMs = 0
      try {
        if (isAlone) await line.alone(endMs)
        begunMs = performance.now()
        const result = await this.#transactionOnce(work, accompany?.(), options)
        line.succeeded()
        return result
      } catch (thrown) {
        if (!(thrown instanceof Repeatable)) throw this.#told(thrown)
        if (performance.now() >= endMs || this.#stopped) throw finalOf(thrown.failure)
        if (thrown.isStalePlan) this.#pool.forgetPrepared()
        else if (!thrown.isLost) {
          this.#noteRepeat(thrown.failure)
          if (!isDeadlock(thrown.failure.cause)) line.conflicted()
          else {
            line.deadlocked()
            // The server takes a second to see one. This process keeps its turn and rests, so that another one does a hundred transactions meanwhile.
            await rest(Math.random() * (performance.now() - begunMs))
          }
        }
      } finally {
        if (isAlone) line.notAlone()
        line.leave()
      }
      if (isAgain) await this.#pause(run)
    }
  }

  /** A process that loses again and again to another one tries at other times than that one. */
  async #pause(run: number): Promise<void> {
    await rest(Math.random() * Math.min(MAX_PAUSE_MS, 2 ** run))
  }

  /** What one statement is refused for may hold for what the runtime stores. */
  #told(thrown: unknown): unknown {
    if (isInstance(thrown, DbError) && thrown.isPassing) this.runtime.host?.bus.storeRefused?.()
    return thrown
  }

  #noteRepeat(failure: DbError): void {
    this.#repeats ??= this.runtime.instrument({
      repeat(thrown: DbError): void {
        throw thrown
      },
    })
    try {
      this.#repeats.repeat(failure)
    } catch {
      // It was measured.
    }
  }

  /** In the primary: a thread has met another session than its own. */
  async serve(): Promise<void> {
    // What is known is looked at again by the health check.
    if (this.#unready === null) await this.#probeAgain()
  }

  async #probeAgain(): Promise<void> {
    if (this.#isProbing) return
    this.#isProbing = true
    try {
      await probeSessions(this.#access)
      this.#unready = null
    } catch (thrown) {
      if (thrown instanceof HeddleError && thrown.code === 'DATABASE_SESSION') this.#unready = thrown.message
    } finally {
      this.#isProbing = false
    }
  }

  unreadyReason(): string | null {
    return this.#unready ?? this.#pending.reason
  }

  /** True when the server answers, in the session that it was asked in. @throws DbError when it does not */
  async healthCheck(): Promise<boolean> {
    if (this.#unready !== null) await this.#probeAgain()
    const execution = await this.#run(CHECK, [])
    if (execution.failure !== null) await this.#repair(execution)
    return true
  }

  /** Runs a short statement on a connection of its own, which no other statement holds up; until that one is open, as any other. @throws DbError */
  async urgent(sql: string, params: readonly SqlValue[]): Promise<{ rowCount: number }> {
    const connection = this.#own.idle
    return connection === null ? this.execute(sql, params) : connection.send(this.#statements.get(sql), params)
  }

  /** Behind a pooler the time limit is that of the server: what is set there, others would have, too. See `StoreDatabase`. */
  async apart(sql: string): Promise<void> {
    if (this.#stopped) throw new DbError('unavailable', 'The database is closed')
    const connection = new PostgresConnection(this.#access, Number.POSITIVE_INFINITY, (dead) =>
      this.#apart.delete(dead),
    )
    this.#apart.add(connection)
    try {
      await connection.open()
      if (connection.keepsSession) await connection.script('SET statement_timeout = 0')
      await connection.script(sql)
    } catch (thrown) {
      throw toDbError(thrown)
    } finally {
      connection.close()
    }
  }

  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    this.#own.close()
    for (const connection of this.#apart) connection.destroy()
    this.#lines.close()
    this.#pending.stop()
    await this.#pool.close(STOP_WAIT_MS)
  }

  /** Does not reject for errors of the server or the connection: see #repair. */
  #send(sql: string | Sql, params: readonly unknown[]): Promise<Execution> {
    if (typeof sql !== 'string') return this.#send(sql.text, valuesOf(sql, params))
    const statement = this.#statements.get(sql)
    return this.#run(statement, wireValues(params, statement.parameterCount))
  }

  #run(statement: Statement, values: Execution['values']): Promise<Execution> {
    return new Promise((resolve) => this.#pool.run(new Execution(statement, values, resolve)))
  }

  /** Repeats a failed statement that has not run or was rolled back, when that helps. @throws DbError */
  async #repair(failed: Execution): Promise<Outcome> {
    const { statement, values } = failed
    const endMs = performance.now() + WAIT_MS
    let execution = failed
    let conflicts = 0
    let losses = 0
    for (let isStale = false; execution.failure !== null; ) {
      const { failure } = execution
      const isRolledBack = isConflict(failure) && !MAY_COMMIT.test(statement.sql)
      // One connection after the other may have been ended.
      const isRepeated = isRolledBack || isHarmless(execution, losses++) || (isStalePlan(failure) && !isStale)
      if (hasLostSession(failure)) this.#doubt()
      if (!isRepeated || performance.now() >= endMs) throw this.#told(finalOf(this.#errorOf(failure)))
      if (isRolledBack) {
        this.#noteRepeat(toDbError(failure))
        await this.#pause(++conflicts)
      }
      if (isStalePlan(failure)) {
        isStale = true
        // Statements that other connections prepared on the old table would fail in the same way.
        this.#pool.forgetPrepared()
      }
      execution = await this.#run(statement, values)
    }
    return execution
  }

  #doubt(): void {
    const nowMs = performance.now()
    if (nowMs - this.#doubtedMs < DOUBT_MS) return
    this.#doubtedMs = nowMs
    this.runtime.callPrimary('doubt', []).catch(() => {}) // The statement has failed with it.
  }

  #errorOf(failure: unknown): DbError {
    const error = toDbError(failure)
    if (sqlStateOf(failure) !== '25001' || this.runtime.settings.rdbPooler === 'none') return error
    const advice = 'with RDB_POOLER=transaction each statement is in a transaction: send this one to the server itself'
    return new DbError(error.kind, `${error.message} (${advice})`, { cause: error.cause })
  }

  /** A connection in a transaction. It must be released. @throws DbError */
  async #begin(options: TransactionOptions): Promise<PostgresConnection> {
    const endMs = performance.now() + WAIT_MS
    for (let losses = 0; ; losses++) {
      const connection = await this.#pool.acquire().catch((thrown: DbError) => {
        if (hasLostSession(thrown)) this.#doubt()
        throw thrown
      })
      const execution = await connection.execute(beginOf(options), [])
      const { failure } = execution
      if (failure === null) return connection
      this.#pool.release(connection)
      if (hasLostSession(failure)) this.#doubt()
      // The server has looked anew at the statement that only this session has, since a schema has come or gone: it had a snapshot then.
      const isLookedAnew = sqlStateOf(failure) === '25001'
      if (!(isLookedAnew || isHarmless(execution, losses)) || performance.now() >= endMs) throw toDbError(failure)
    }
  }

  async #transactionOnce<T>(
    work: (tx: Queryable) => Promise<T>,
    companion: TransactionCompanion | undefined,
    options: TransactionOptions,
  ): Promise<T> {
    const connection = await this.#begin(options)
    const instrument: ToolRuntime['instrument'] = (tx) => this.runtime.instrument(tx)
    try {
      return await runTransaction(work, connection, this.#statements, companion, instrument, options.readOnly)
    } finally {
      this.#pool.release(connection)
    }
  }
}

/** The connection is lost, and the statement may be sent again: it has not run, or it changes nothing. @param losses how often it was */
function isHarmless(execution: Execution, losses: number): boolean {
  if (hasNotRun(execution)) return true
  const { statement, failure } = execution
  const changesNothing = statement.begins || statement === CHECK
  return changesNothing && losses < OPEN_AGAIN && endsConnection(failure) && !hasLostSession(failure)
}

const rest = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/** It is not repeated any more. */
const finalOf = (error: DbError): DbError =>
  error.kind === 'serialization' ? contended(error.message, error.cause) : error

/** A superuser is not held by the limits of roles and databases, whose -1 is none. */
const ACCEPTED = `
  SELECT LEAST(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    CASE WHEN rolconnlimit >= 0 AND NOT rolsuper THEN rolconnlimit END,
    CASE WHEN datconnlimit >= 0 AND NOT rolsuper THEN datconnlimit END) AS most
  FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()`

/**
 * Elsewhere a text, an event or the message of an error with a character that the encoding lacks is refused each time that it is to be stored.
 * @throws DATABASE_ENCODING; DbError
 */
async function requireEncoding(db: Queryable, { rdbDatabase: name }: ToolRuntime['settings']): Promise<void> {
  const encoding = (await db.queryOne("SELECT current_setting('server_encoding') AS name"))?.name
  if (encoding === 'UTF8') return
  throw new HeddleError(
    'DATABASE_ENCODING',
    `The database ${name} stores text as ${encoding}, which does not hold every character: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, move the tables there (pg_dump, psql), and set RDB_DATABASE`,
  )
}

/** A superuser is in all roles, and must not run triggers of others either: so not by `pg_has_role`. */
const FOREIGN = `
  WITH RECURSIVE mine (oid) AS (
    SELECT oid FROM pg_roles WHERE rolname = current_user
    UNION SELECT roleid FROM pg_auth_members JOIN mine ON member = mine.oid)
  SELECT relname AS name, pg_get_userbyid(relowner) AS owner FROM pg_class
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relowner NOT IN (SELECT oid FROM mine)
    AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND (relname LIKE 'heddle\\_%' OR relname = '_migrations')
  ORDER BY relname LIMIT 1`

/**
 * Whoever may make a table where the runtime looks for one of its own, with a trigger in it, would have that run as the runtime's user.
 * @throws DATABASE_FOREIGN when one belongs to another role; DbError, also when the schema is missing
 */
export async function requireOwnTables(db: Queryable, settings: ToolRuntime['settings']): Promise<void> {
  const { rdbUser: user, rdbSchema: schema, dbAutoMigrate } = settings
  if ((await db.queryOne('SELECT 1 AS one FROM pg_namespace WHERE nspname = $1', [schema])) === null) {
    if (!dbAutoMigrate)
      throw new DbError('other', `There is no schema "${schema}" (RDB_SCHEMA): CREATE SCHEMA "${schema}"`)
    await db.execute(`CREATE SCHEMA IF NOT EXISTS "${schema}"`)
  }
  const foreign = await db.queryOne<{ name: string; owner: string }>(FOREIGN, [schema])
  if (foreign === null) return
  const { name, owner } = foreign
  throw new HeddleError(
    'DATABASE_FOREIGN',
    `${name} in the schema ${schema} belongs to the role ${owner}, which ${user} is not in: if it is yours, ALTER TABLE ${schema}.${name} OWNER TO ${user}; otherwise drop it, and let nobody else create tables in this schema`,
  )
}
