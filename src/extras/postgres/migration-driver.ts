// Migrations on PostgreSQL.
import { DbError } from '../../core/errors/catalogue.ts'
import {
  type Migration,
  type MigrationConnection,
  MigrationDriver,
  type MigrationSession,
} from '../../stores/migrations/driver.ts'
import { ScriptFault } from '../../stores/migrations/script-fault.ts'
import { statementsIn } from '../../stores/sql/statement.ts'
import { POSTGRES_DIALECT } from '../../stores/sql/tokens.ts'
import { sqlStateOf } from './failure.ts'

/** Milliseconds for which a process waits for another one that migrates, and a statement of a migration for a lock. */
const MIGRATION_WAIT_MS = 300_000
/** A wait for another process is told when it takes longer, milliseconds. */
const TOLD_AFTER_MS = 200
/** First half of the key of the advisory lock for statements without a transaction; the second half is the schema. */
const ALONE_LOCK = 1_751_475_308
/** Milliseconds between two looks whether it is free. */
const LOOK_MS = 100
/** Two processes have begun to make the table at the same time: one of them makes it. */
const MADE_MEANWHILE: readonly string[] = ['23505', '42P07']

interface OwnConnection extends MigrationConnection {
  /** @throws DbError */
  script(sql: string): Promise<void>
  /** Removes what the migration before this one has left: settings, temporary tables. @throws DbError */
  renew(): Promise<void>
  /** Sets, in the transaction under way, what statements rely on. */
  readonly setLocal: string
  /** What is set for a session holds for the next statement. */
  readonly keepsSession: boolean
  /** No transaction is open on it. */
  readonly isClean: boolean
}

/** Migrations on a separate connection. A lock of the table of migrations makes a second process wait: unlike an advisory one, no stranger can take it. */
export class PostgresMigrations extends MigrationDriver {
  readonly #connection: OwnConnection
  readonly #onWait: () => void
  readonly #waitMs: number
  #isAlone = false

  /**
   * @param connection used for nothing else, and not used afterwards: a migration may have changed its settings
   * @param onWait called before waiting for another process that migrates
   * @param waitMs how long to wait for another process, in milliseconds; default 5 minutes
   */
  constructor(connection: OwnConnection, onWait: () => void, waitMs = MIGRATION_WAIT_MS) {
    super(connection, POSTGRES_DIALECT)
    this.#connection = connection
    this.#onWait = onWait
    this.#waitMs = waitMs
  }

  protected override async hasTable(): Promise<boolean> {
    return (await this.#connection.run("SELECT 1 WHERE to_regclass('_migrations') IS NOT NULL", [])).rows.length > 0
  }

  override async transaction<T>(work: (session: MigrationSession) => Promise<T>): Promise<T> {
    const connection = this.#connection
    // It would give the lock away.
    if (!this.#isAlone) await connection.renew()
    try {
      await this.#begin()
      const result = await work(this)
      await connection.script('COMMIT')
      return result
    } catch (thrown) {
      // The first error matters more. If the connection cannot roll back it is lost, and the server does it.
      await connection.script('ROLLBACK').catch(() => {})
      throw thrown
    }
  }

  override async clear(): Promise<void> {
    await this.transaction(async () => {
      const { rows } = await this.#connection.run('SELECT quote_ident(current_schema()) AS schema', [])
      const schema = String(rows[0]!.schema)
      await this.#connection.script(`DROP SCHEMA ${schema} CASCADE; CREATE SCHEMA ${schema}`)
    })
  }

  /** Begins the transaction of a migration as soon as no other process is in one. */
  async #begin(): Promise<void> {
    const connection = this.#connection
    const telling = setTimeout(this.#onWait, TOLD_AFTER_MS)
    try {
      for (let isMade = false; !isMade; ) {
        await connection.script(
          `BEGIN ISOLATION LEVEL READ COMMITTED; ${this.#settings}; SET LOCAL lock_timeout = ${this.#waitMs}`,
        )
        isMade = await this.#makeTable()
      }
      await connection.script('LOCK TABLE _migrations IN SHARE ROW EXCLUSIVE MODE')
    } catch (thrown) {
      if (sqlStateOf((thrown as Error).cause) !== '55P03') throw thrown
      throw new DbError('timeout', `Waited ${this.#waitMs} ms for another process that migrates this database`, {
        cause: thrown,
      })
    } finally {
      clearTimeout(telling)
    }
  }

  /** @returns false when another process has made it meanwhile, and the transaction is over */
  async #makeTable(): Promise<boolean> {
    const connection = this.#connection
    try {
      await this.createTable()
      return true
    } catch (thrown) {
      if (!MADE_MEANWHILE.includes(sqlStateOf((thrown as Error).cause))) throw thrown
      await connection.script('ROLLBACK')
      return false
    }
  }

  override async run(script: string): Promise<void> {
    await super.run(script)
    if (this.#connection.isClean) throw new DbError('other', 'it has ended the transaction that it runs in')
  }

  override async record(migration: Pick<Migration, 'id' | 'checksum'>, appliedAt: string): Promise<void> {
    // The migration may have changed settings: the dump of a schema, for example, sets an empty search_path.
    await this.#connection.script(`RESET ALL; RESET ROLE; DISCARD TEMP; UNLISTEN *; ${this.#settings}`)
    await super.record(migration, appliedAt)
  }

  override get aloneRefusal(): string | null {
    return this.#connection.keepsSession
      ? null
      : 'behind a transaction pooler the statement would have no settings: run `heddle migrate` with RDB_HOST of the server itself and RDB_POOLER=none'
  }

  /**
   * By an advisory lock of the session. Who waits for it asks again and again: one that slept in a statement would have a snapshot,
   * which CREATE INDEX CONCURRENTLY of the other process waits for.
   */
  override async alone<T>(work: () => Promise<T>): Promise<T> {
    await this.#connection.renew()
    const deadlineMs = performance.now() + this.#waitMs
    const telling = setTimeout(this.#onWait, TOLD_AFTER_MS)
    try {
      while (!(await this.#lock())) {
        if (performance.now() >= deadlineMs)
          throw new DbError('timeout', `Waited ${this.#waitMs} ms for another process that migrates this database`)
        await new Promise((done) => setTimeout(done, LOOK_MS))
      }
    } finally {
      clearTimeout(telling)
    }
    this.#isAlone = true
    try {
      return await work()
    } finally {
      this.#isAlone = false
      // A connection that is lost has lost the lock, too.
      await this.#connection.script('SELECT pg_advisory_unlock_all()').catch(() => {})
    }
  }

  async #lock(): Promise<boolean> {
    const sql = `SELECT pg_try_advisory_lock(${ALONE_LOCK}, hashtext(current_schema())) AS is_ours`
    return (await this.#connection.run(sql, [])).rows[0]?.is_ours === true
  }

  protected override async sendAlone(statement: string): Promise<void> {
    await this.#connection.script(`SET statement_timeout = 0; SET lock_timeout = ${this.#waitMs}`)
    try {
      await this.#connection.script(statement)
    } finally {
      await this.#connection.script('RESET ROLE').catch(() => {})
    }
  }

  /** A text that the server cannot read has not begun. An error within a function has no position. */
  override hasLeftNothing(error: unknown): boolean {
    const { cause } = error as Error
    return sqlStateOf(cause) === '42601' && Number((cause as { position?: unknown }).position) > 0
  }

  protected override beginAgain(): Promise<void> {
    return this.#connection.script(`ROLLBACK; BEGIN; ${this.#settings}`)
  }

  get #settings(): string {
    return `${this.#connection.setLocal}; SET LOCAL statement_timeout = 0`
  }

  protected override errorOf(thrown: unknown): DbError {
    const { kind, message, cause } = thrown as DbError
    return new DbError(kind, `${message}${adviceFor(cause)}`, { cause })
  }

  protected override isSame(thrown: unknown, { cause }: DbError): boolean {
    return thrown instanceof DbError && sqlStateOf(thrown.cause) === sqlStateOf(cause)
  }

  /** By the position that the server tells. It counts characters from 1, over the whole text. */
  protected override toldFault(script: string, error: DbError): ScriptFault | null {
    const position = Number((error.cause as { position?: unknown } | undefined)?.position)
    if (!(position > 0)) return null
    const offset = [...script].slice(0, position - 1).join('').length
    const part = statementsIn(script, POSTGRES_DIALECT).find(({ end }) => offset < end)
    return new ScriptFault(error, offset, part === undefined ? script : script.slice(part.start, part.end))
  }
}

function adviceFor(cause: unknown): string {
  if (sqlStateOf(cause) !== '25001') return ''
  return ': a migration runs in a transaction. Leave CONCURRENTLY out, or write the statement into a migration of its own with the line `-- heddle: no-transaction`'
}
