// One connection to the file.
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type BetterSqlite3 from 'better-sqlite3'
import { RecentlyUsed } from '../../core/collections/recently-used.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { makeFolder } from '../../core/modules/make-folder.cjs'
import { movedMemory } from '../../core/schedule/moved-time.ts'
import type { Outcome } from '../../stores/sql/database.ts'
import { openPrivate } from '../../stores/sqlite/driver.ts'
import { isBusy, toDbError } from './failure.ts'
import { moveFunctions } from './moved-functions.ts'
import { Statement } from './statement.ts'

/** Prepared statements kept per connection. */
const MAX_STATEMENTS = 256

/**
 * One connection of one thread. It is synchronous and never waits for a lock: it throws `busy` at once, and the caller tries again.
 * SQLite's own busy handler would block the thread's event loop.
 */
export class SqliteConnection {
  readonly path: string
  readonly #database: BetterSqlite3.Database
  readonly #requireFile: () => void
  /** A statement of this transaction was not read-only. */
  hasWritten = false
  /** After a statement of this transaction, none of another one should share its commit. */
  endsSharing = false
  readonly #statements = new RecentlyUsed<string, Statement>(MAX_STATEMENTS)
  #schemaVersion: BetterSqlite3.Statement | null = null
  #knownVersion: unknown
  #hasDeferred = false

  /**
   * @param synchronous NORMAL: SQLite itself syncs at checkpoints only, so that a power cut may take the last commits; whoever needs more
   * waits for `StoreSync`. FULL: each commit waits for the disk, and the thread with it
   * @param requireFile called before each commit: throws where it would go into a file that has no name any more
   */
  constructor(path: string, synchronous: 'NORMAL' | 'FULL' = 'NORMAL', requireFile = (): void => {}) {
    this.path = path
    this.#requireFile = requireFile
    // A lane may have the files alone.
    if (!existsSync(path)) makeFolder(dirname(path))
    this.#database = openPrivate(path, { timeout: 0 })
    try {
      const mode = this.#database.pragma('journal_mode = WAL', { simple: true })
      if (mode !== 'wal') throw new DbError('unavailable', `${path} has journal mode ${mode}, not WAL`)
      this.#database.pragma(`synchronous = ${synchronous}`)
      this.#database.pragma('foreign_keys = ON')
      if (movedMemory() !== null) moveFunctions(this.#database)
    } catch (thrown) {
      this.#database.close()
      throw thrown
    }
  }

  /** Prepares a statement, or takes it from the cache. @throws DbError */
  statement(sql: string): Statement {
    const cached = this.#statements.get(sql)
    if (cached !== undefined) return cached
    try {
      const statement = new Statement(this.#database.prepare(sql), sql)
      this.#statements.add(sql, statement)
      return statement
    } catch (thrown) {
      // The schema is locked at the moment: the caller tries again.
      if (isBusy(thrown)) throw thrown
      throw toDbError(thrown, true)
    }
  }

  /** @throws the driver's error, or DbError */
  run(sql: string, params: readonly unknown[]): Outcome {
    return this.runStatement(this.statement(sql), params)
  }

  /** Runs a statement that is a commit by itself. @throws as `commit` */
  runAlone(sql: string, params: readonly unknown[]): Outcome {
    this.#requireFile()
    return this.run(sql, params)
  }

  /** @param statement of this connection. @throws the driver's error, or DbError */
  runStatement(statement: Statement, params: readonly unknown[]): Outcome {
    if (!statement.readonly) this.hasWritten = true
    if (!statement.shares) this.endsSharing = true
    return statement.run(params)
  }

  /** Takes SQLite's write lock. @throws `busy` when another connection has it */
  begin(): void {
    this.rollback()
    this.hasWritten = false
    this.endsSharing = false
    this.#control('BEGIN IMMEDIATE')
  }

  /** @throws DbError `unavailable` when the file was removed or replaced; else the driver's error */
  commit(): void {
    this.#requireFile()
    this.#control('COMMIT')
  }

  /** Does nothing where SQLite has rolled back already. */
  rollback(): void {
    if (this.#database.inTransaction) this.#control('ROLLBACK')
  }

  /** Begins a part of the transaction that can be undone by itself. There is one at a time. */
  savepoint(): void {
    this.#control('SAVEPOINT part')
  }

  releaseSavepoint(): void {
    this.#control('RELEASE part')
  }

  rollbackToSavepoint(): void {
    this.#control('ROLLBACK TO part')
    this.#control('RELEASE part')
  }

  /** A foreign key is checked at the commit, where nobody can tell which part of it has broken it, or has fixed what another broke. */
  get hasDeferredConstraints(): boolean {
    this.#schemaVersion ??= this.#database.prepare('PRAGMA schema_version').pluck()
    const version = this.#schemaVersion.get()
    if (version !== this.#knownVersion) {
      this.#knownVersion = version
      const deferred = "SELECT 1 FROM sqlite_master WHERE sql LIKE '%INITIALLY%DEFERRED%' LIMIT 1"
      this.#hasDeferred = this.#database.prepare(deferred).get() !== undefined
    }
    return this.#hasDeferred
  }

  get inTransaction(): boolean {
    return this.#database.inTransaction
  }

  /** Writes a page and changes nothing, in a transaction that has begun. */
  touch(): void {
    this.#database.pragma(`user_version = ${this.#database.pragma('user_version', { simple: true })}`)
  }

  /** Copies the log into the file, so that its room on the disk can be used again. @throws the driver's error */
  checkpoint(): void {
    this.#database.pragma('wal_checkpoint(RESTART)')
  }

  /** Runs a script verbatim. SQLite itself splits it into statements. */
  script(sql: string): void {
    this.#database.exec(sql)
  }

  close(): void {
    this.#statements.clear()
    this.#database.close()
  }

  readonly #controls = new Map<string, BetterSqlite3.Statement>()

  #control(sql: string): void {
    let prepared = this.#controls.get(sql)
    if (!prepared) {
      prepared = this.#database.prepare(sql)
      this.#controls.set(sql, prepared)
    }
    prepared.run()
  }
}
