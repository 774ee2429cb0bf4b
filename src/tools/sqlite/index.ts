// The tool `db` on SQLite.
import { AsyncResource } from 'node:async_hooks'
import { resolve } from 'node:path'
import type BetterSqlite3 from 'better-sqlite3'
import type { Queryable, Sql, SqlValue, TransactionCompanion, TransactionOptions } from '../../contracts/db.ts'
import type { ToolRuntime } from '../../contracts/tool.ts'
import type { CausalContext } from '../../contracts/tracing.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'
import { valuesOf } from '../../core/sql/fragment.ts'
import type { MigrationDriver } from '../../stores/migrations/driver.ts'
import { migrateOrReport, PendingMigrations } from '../../stores/migrations/runner.ts'
import { type Outcome, READ_ONLY, SqlDatabase, STOP_WAIT_MS, WAIT_MS } from '../../stores/sql/database.ts'
import { WriteFault } from '../../transport/memory/words.ts'
import { releaseLockOfThread, WriteLock } from '../../transport/memory/write-lock.ts'
import { SqliteConnection } from './connection.ts'
import { claimFile, DatabaseFile, FILE_IDENTITY_BYTES, REPLACED, StoreSync } from './database-file.ts'
import { isBusy, toDbError, whenFree } from './failure.ts'
import { type Answer, failed, type Order, runHeavy, type SendOrder, StatementProcesses } from './heavy-statements.ts'
import { SqliteMigrations } from './migration-driver.ts'
import { type FaultListener, PromptFunctions, Transaction, Write } from './queued.ts'
import { PULSE_MS } from './transaction.ts'
import { WriteQueue } from './write-queue.ts'
import { FAULT_TEXTS, faultOf, WriteWatch } from './write-watch.ts'

/**
 * The tool `db` on SQLite. One instance per thread, each with its own connections to the one file.
 *
 * Reads run at once and see committed data. Writes run in the order in which this thread issued them. Those of one turn of the event
 * loop are committed together, transactions among them, and answered after the commit, and with SQLITE_SYNCHRONOUS=full when the disk has it.
 * Transactions (`BEGIN IMMEDIATE`, also those that only read) have their own connection. One that waits for more than its `tx` has a commit of
 * its own, and holds the write lock from the first to the last statement.
 */
export default class SqliteDb extends SqlDatabase {
  readonly name = 'db'
  readonly dialect = 'sqlite'
  readonly #lockMemory: SharedArrayBuffer
  readonly #lock: WriteLock
  #writes: WriteQueue
  /** Null where the last writes may be lost in a power cut. */
  readonly #storeSync: StoreSync | null
  readonly #fault: WriteFault
  readonly #identity: SharedArrayBuffer
  /** Once its path was looked at. */
  #known: DatabaseFile | null = null
  /** In the primary, once the file is open. */
  #watch: WriteWatch | null = null
  #shared: SqliteConnection | null = null
  /** Calls that a connection is opened for, and those behind them. */
  #opening: Promise<unknown> | null = null
  #transactions: SqliteConnection | null = null
  /** In the primary, once a heavy statement has come. */
  #processes: StatementProcesses | null = null
  readonly #promptFunctions = new PromptFunctions()
  /** In the primary, where this process has the file for itself. */
  #claim: BetterSqlite3.Database | null = null
  /** In the primary. */
  readonly #pending = new PendingMigrations()
  #stopped = false

  constructor(runtime: ToolRuntime) {
    super(runtime, { 'db.system.name': 'sqlite' })
    this.#lockMemory = runtime.sharedMemory('write-lock', 64)
    this.#lock = new WriteLock(this.#lockMemory)
    this.#fault = new WriteFault(runtime.sharedMemory('write-fault', 4))
    this.#identity = runtime.sharedMemory('file-identity', FILE_IDENTITY_BYTES)
    const { sqliteSynchronous, sqlitePath } = runtime.settings
    this.#storeSync = sqliteSynchronous === 'normal' ? null : new StoreSync(sqlitePath)
    this.#writes = this.#newQueue()
  }

  #newQueue(): WriteQueue {
    return new WriteQueue({
      lock: this.#lock,
      connection: () => this.#openShared(),
      transactions: () => this.#openForTransactions(),
      storeSync: this.#storeSync,
      send: this.#send,
    })
  }

  /** What was stopped in a transaction holds up no other thread, and no other handler of this one. */
  stopped(context: CausalContext | undefined): void {
    const left = this.#writes.stopped(context)
    if (left === null) return
    // What was stopped may have left something behind that still uses it.
    this.#transactions?.close()
    this.#transactions = null
    this.#writes = this.#newQueue()
    const goOn = (): void => {
      for (const item of left) this.#writes.push(item)
    }
    this.#open(() => this.#openForTransactions()).then(goOn, goOn)
  }

  /** A lane has died, perhaps during a write. Its lock is released, so that the others need not wait until it expires. */
  threadGone(threadId: number): void {
    releaseLockOfThread(this.#lockMemory, threadId)
    this.#processes?.threadGone(threadId)
  }

  /** In the primary: heavy statements of all threads. */
  async serve(_: string, [order]: readonly unknown[]): Promise<Answer> {
    if (this.#stopped) return failed('unavailable', 'The database is closed')
    // Its process has the path alone, and would open whatever has that name now.
    if (!this.#file.isOpenedOne()) return failed('unavailable', REPLACED)
    const { sqliteSynchronous, rdbStatementTimeoutMs } = this.runtime.settings
    this.#processes ??= new StatementProcesses(this.#file.path, sqliteSynchronous, rdbStatementTimeoutMs)
    return this.#processes.perform(order as Order)
  }

  /**
   * In the primary: opens the file, and migrates or reports what is pending. In a lane: nothing, because the file is opened at first use.
   * @throws DbError `unavailable`, DATABASE_INVALID, MIGRATION_INVALID
   */
  async boot(): Promise<void> {
    if (this.runtime.thread.kind !== 'primary') return
    const file = this.#file
    file.requireDatabase()
    if (this.#shared === null && file.isElsewhereOpen()) {
      const message = `Another process has ${file.path} open: SQLite serves one service, and two of them slow each other down`
      this.runtime.log('WARNING', message)
    }
    const connection = await this.#open(() => this.#openShared())
    // Until a connection has read, SQLite does not hold the log for it, and removes the log when another one closes.
    connection.run('SELECT 1 FROM sqlite_schema', [])
    file.remember()
    const log = this.runtime.log.bind(this.runtime)
    const { settings } = this.runtime
    const waiting = await this.migrating((driver) => migrateOrReport(driver, settings, log))
    this.#pending.watch(waiting, settings.domainsDir, (work) => this.migrating(work), log)
    this.#watch ??= new WriteWatch(file, this.#fault, () => this.#touch(), log)
    this.#watch.start()
  }

  async otherUser(): Promise<string | null> {
    this.#file.requireDatabase()
    return this.#file.isElsewhereOpen() ? 'another process has the database file open' : null
  }

  /** Migrates on a connection of its own. */
  async migrating<T>(work: (driver: MigrationDriver) => Promise<T>): Promise<T> {
    this.#file.requireDatabase()
    const synchronous = this.#storeSync === null ? 'NORMAL' : 'FULL'
    const driver = new SqliteMigrations(await whenFree(() => this.#connect(synchronous)))
    return work(driver).finally(() => driver.close())
  }

  /** For the event store: false when another process has claimed the file. What is claimed is free again when the process has stopped or ended. */
  claim(): boolean {
    this.#claim ??= claimFile(this.#file.path)
    return this.#claim !== null
  }

  /**
   * Waits at most 5 s for its turn (`timeout`). After 10 s without a statement it is rolled back (`timeout`).
   * When a statement fails, the whole transaction is rolled back.
   * @param accompany makes what goes with each run of `work`
   * @param handler the function by whose source it is known what the transaction waits for, or the name of its route
   */
  transaction<T>(
    work: (tx: Queryable) => Promise<T>,
    accompany?: () => TransactionCompanion,
    handler: unknown = work,
    options: TransactionOptions = {},
  ): Promise<T> {
    if (options.readOnly) return this.transaction(this.#onlyReading(work), accompany, handler)
    const isOpen = this.#opening === null && this.#transactions !== null && this.#fault.kind !== 'replaced'
    // Not async, which would cost three more promises.
    return isOpen ? this.#enqueue(work, accompany, handler) : this.#enqueueLater(work, accompany, handler)
  }

  /** As on PostgreSQL: a statement that would write is refused, and nothing goes on after it. */
  #onlyReading<T>(work: (tx: Queryable) => Promise<T>): (tx: Queryable) => Promise<T> {
    return async (tx) => {
      let refusal: DbError | null = null
      const guarded =
        <Args extends [string | Sql, ...unknown[]], R>(send: (...args: Args) => Promise<R>) =>
        async (...args: Args): Promise<R> => {
          const [sql] = args
          if (!this.#openShared().statement(typeof sql === 'string' ? sql : sql.text).readonly)
            refusal ??= new DbError('other', `${READ_ONLY}: this statement writes`)
          if (refusal !== null) throw refusal
          return send(...args)
        }
      const { query, queryOne, execute } = tx
      const result = await work({
        ...tx,
        query: guarded(query),
        queryOne: guarded(queryOne),
        execute: guarded(execute),
      } as Queryable)
      if (refusal !== null) throw refusal as DbError
      return result
    }
  }

  async #enqueueLater<T>(
    work: (tx: Queryable) => Promise<T>,
    accompany: (() => TransactionCompanion) | undefined,
    handler: unknown,
  ): Promise<T> {
    this.#refuseWhileUseless()
    await this.#open(() => this.#openForTransactions())
    return this.#enqueue(work, accompany, handler)
  }

  #enqueue<T>(
    work: (tx: Queryable) => Promise<T>,
    accompany: (() => TransactionCompanion) | undefined,
    handler: unknown,
  ): Promise<T> {
    return new Promise((resolvePromise, reject) => {
      const transaction = new Transaction(
        { work, accompany, instrument: this.#instrument },
        this.#promptFunctions.of(handler),
        this.#faults,
        resolvePromise as (result: unknown) => void,
        reject,
      )
      this.#writes.push(transaction)
    })
  }

  readonly #instrument = <T extends object>(tx: T): T => this.runtime.instrument(tx)

  /** @throws DbError `unavailable` while a write would go nowhere */
  #refuseWhileUseless(): void {
    if (this.#fault.kind === 'replaced') throw new DbError('unavailable', FAULT_TEXTS.replaced)
  }

  /** What the failure of one write says about all writes is known to all threads, and the primary looks after it. */
  readonly #faults: FaultListener = {
    noteFailure: (thrown) => {
      const kind = isInstance(thrown, DbError) ? faultOf(thrown) : 'none'
      if (kind === 'full' || kind === 'failed' || kind === 'replaced') this.#faults.noteFault(thrown as DbError)
    },
    noteFault: (error) => {
      const kind = faultOf(error)
      if (kind !== 'none' && this.#fault.kind === 'none') this.#fault.kind = kind
    },
  }

  /** Keeps the write lock until the work is done. */
  async #pulsing<T>(work: Promise<T>): Promise<T> {
    const pulse = setInterval(() => this.#lock.renew(), PULSE_MS)
    try {
      return await work
    } finally {
      clearInterval(pulse)
    }
  }

  readonly #send: SendOrder = (order) => this.runtime.callPrimary('heavy', [order]) as Promise<Answer>

  /** Runs something when it is its turn, by itself and with the write lock. @throws what it rejects with; DbError when it has not run */
  #alone<T>(begin: () => void, work: () => Promise<T>): Promise<T> {
    return new Promise((resolvePromise, reject) => {
      this.#writes.push({
        kind: 'exclusive',
        deadlineMs: performance.now() + WAIT_MS,
        begin,
        // Bound to the asynchronous context of its caller: the queue would run it in the context of another caller.
        run: AsyncResource.bind(() => work().then(resolvePromise, reject)),
        reject,
      })
    })
  }

  /** A statement that writes and may take long. */
  #writeHeavy(sql: string, params: readonly SqlValue[]): Promise<Outcome> {
    return this.#alone(
      () => {},
      () => this.#pulsing(runHeavy(this.#send, sql, params, true)),
    )
  }

  /**
   * In the primary it writes. False when the file has been removed or replaced.
   * @throws DbError `unavailable` while writes fail
   */
  async healthCheck(): Promise<boolean> {
    await this.query('SELECT 1')
    if (!this.#file.isOpenedOne()) {
      await this.#watch?.check()
      return false
    }
    if (this.#watch === null || (await this.#watch.check())) return true
    throw new DbError('unavailable', this.#watch.reason ?? 'The database file does not take writes')
  }

  unreadyReason(): string | null {
    return this.#watch?.reason ?? this.#pending.reason
  }

  /** Stores what is there already. @throws DbError, or the driver's error */
  async #touch(): Promise<void> {
    const connection = await this.#open(() => this.#openForTransactions())
    await this.#alone(
      () => connection.begin(),
      async () => {
        connection.touch()
        connection.commit()
      },
    )
    await this.#storeSync?.done()
  }

  async stop(): Promise<void> {
    if (this.#stopped) return
    await this.#writes.close(STOP_WAIT_MS)
    this.#stopped = true
    this.#processes?.stop()
    this.#watch?.stop()
    this.#pending.stop()
    this.#transactions?.close()
    this.#shared?.close()
    this.#storeSync?.close()
    this.#claim?.close()
  }

  protected override async run(sql: string | Sql, params: readonly SqlValue[]): Promise<Outcome> {
    if (typeof sql !== 'string') return this.run(sql.text, valuesOf(sql, params))
    const isOpen = this.#opening === null && this.#shared !== null
    const connection = isOpen ? this.#shared! : await this.#open(() => this.#openShared())
    let solitary = false
    let deletes = false
    try {
      const statement = connection.statement(sql)
      if (statement.isHeavy(params)) {
        return statement.readonly ? runHeavy(this.#send, sql, params, false) : this.#writeHeavy(sql, params)
      }
      if (statement.readonly) return statement.run(params)
      solitary = statement.solitary
      deletes = statement.deletes
    } catch (thrown) {
      // A write that is still in the queue may create its table, so it is tried again after that one.
      const waits = isInstance(thrown, DbError) && thrown.kind === 'syntax' && this.#writes.length > 0
      if (isBusy(thrown)) return whenFree(() => connection.run(sql, params))
      if (!waits) throw toDbError(thrown)
    }
    this.#refuseWhileUseless()
    if (this.#fault.kind === 'reserve' && !deletes) throw new DbError('unavailable', FAULT_TEXTS.reserve)
    try {
      return await this.#write(sql, params, solitary)
    } catch (thrown) {
      if (!deletes || faultOf(thrown) !== 'full') throw thrown
    }
    this.#fault.kind = 'reserve'
    this.#file.giveReserve()
    await whenFree(() => connection.checkpoint())
    return this.#write(sql, params, solitary)
  }

  #write(sql: string, params: readonly SqlValue[], solitary: boolean): Promise<Outcome> {
    return new Promise((resolvePromise, reject) => {
      this.#writes.push(new Write(sql, params, solitary, this.#faults, resolvePromise, reject))
    })
  }

  /** Opens what a call needs when those before it have what they need, so that the first calls of a thread keep their order, too. */
  #open(open: () => SqliteConnection): Promise<SqliteConnection> {
    const attempt = (): Promise<SqliteConnection> => whenFree(open)
    const opening = this.#opening === null ? attempt() : this.#opening.then(attempt, attempt)
    const done = (): void => {
      if (this.#opening === opening) this.#opening = null
    }
    this.#opening = opening
    // Before the call itself goes on: what is called after this goes the short way, and must find it in the queue.
    opening.then(done, done)
    return opening
  }

  #openShared(): SqliteConnection {
    this.#shared ??= this.#connect()
    return this.#shared
  }

  /** With the one for reads, which a write of this thread asks about its statement. */
  #openForTransactions(): SqliteConnection {
    this.#openShared()
    this.#transactions ??= this.#connect()
    return this.#transactions
  }

  #connect(synchronous?: 'NORMAL' | 'FULL'): SqliteConnection {
    if (this.#stopped) throw new DbError('unavailable', 'The database is closed')
    this.#file.requireOpenedOne()
    return new SqliteConnection(this.#file.path, synchronous, () => this.#file.requireOpenedOne())
  }

  get #file(): DatabaseFile {
    if (this.#known !== null) return this.#known
    const { sqlitePath } = this.runtime.settings
    if (sqlitePath === '' || sqlitePath.startsWith(':memory:') || sqlitePath.startsWith('file:')) {
      throw new DbError('unavailable', `SQLITE_PATH must be a file that all threads can open, not "${sqlitePath}"`)
    }
    this.#known = new DatabaseFile(resolve(sqlitePath), this.#identity)
    return this.#known
  }
}
