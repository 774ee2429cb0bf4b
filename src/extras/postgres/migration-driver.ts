// Migrations on PostgreSQL.
import { DbError } from '../../core/errors/db-error.ts'
import {
  APPLIED_MIGRATIONS,
  appliedOf,
  type MigrationDriver,
  type MigrationSession,
  migrationTable,
} from '../../stores/migrations/driver.ts'
import { failedStatement, ScriptFault } from '../../stores/migrations/script-fault.ts'
import type { Outcome } from '../../stores/sql/database.ts'
import { refuseControl, statementsIn } from '../../stores/sql/script.ts'
import { POSTGRES_DIALECT } from '../../stores/sql/tokens.ts'
import { sqlStateOf } from './failure.ts'

/** Milliseconds for which a process waits for another one that migrates, and a statement of a migration for a lock. */
const MIGRATION_WAIT_MS = 300_000
/** A wait for another process is told when it takes longer, milliseconds. */
const TOLD_AFTER_MS = 200
/** Two processes have begun to make the table at the same time: one of them makes it. */
const MADE_MEANWHILE: readonly string[] = ['23505', '42P07']

/** A connection that is used for nothing else. */
interface MigrationConnection {
  run(sql: string, params: readonly unknown[]): Promise<Outcome>
  /** Runs a text verbatim. @throws DbError */
  script(sql: string): Promise<void>
  /** No transaction is open on it. */
  readonly isClean: boolean
}

/** Migrations on a separate connection. A lock of the table of migrations makes a second process wait: unlike an advisory one, no stranger can take it. */
export class PostgresMigrations implements MigrationDriver {
  readonly #connection: MigrationConnection
  readonly #onWait: () => void
  readonly #waitMs: number

  /**
   * @param connection used for nothing else, and not used afterwards: a migration may have changed its settings
   * @param onWait called before waiting for another process that migrates
   * @param waitMs how long to wait for another process, in milliseconds; default 5 minutes
   */
  constructor(connection: MigrationConnection, onWait: () => void, waitMs = MIGRATION_WAIT_MS) {
    this.#connection = connection
    this.#onWait = onWait
    this.#waitMs = waitMs
  }

  async applied(): Promise<Map<string, string>> {
    const table = await this.#connection.run("SELECT 1 WHERE to_regclass('_migrations') IS NOT NULL", [])
    return table.rows.length === 0 ? new Map() : appliedOf(await this.#connection.run(APPLIED_MIGRATIONS, []))
  }

  async transaction<T>(work: (session: MigrationSession) => Promise<T>): Promise<T> {
    const connection = this.#connection
    // Removes what the migration before this one has left: settings, temporary tables.
    await connection.script('DISCARD ALL')
    try {
      await this.#begin()
      const result = await work(this.#session())
      await connection.script('COMMIT')
      return result
    } catch (thrown) {
      // The first error matters more. If the connection cannot roll back it is lost, and the server does it.
      await connection.script('ROLLBACK').catch(() => {})
      throw thrown
    }
  }

  async clear(): Promise<void> {
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
          `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = ${this.#waitMs}`,
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
      await migrationTable(connection).createTable()
      return true
    } catch (thrown) {
      if (!MADE_MEANWHILE.includes(sqlStateOf((thrown as Error).cause))) throw thrown
      await connection.script('ROLLBACK')
      return false
    }
  }

  #session(): MigrationSession {
    const connection = this.#connection
    const table = migrationTable(connection)
    return {
      ...table,
      async run(sql) {
        refuseControl(sql, POSTGRES_DIALECT)
        await runScript(connection, sql)
        if (connection.isClean) throw new DbError('other', 'it has ended the transaction that it runs in')
      },
      async record(migration, appliedAt) {
        // The migration may have changed settings: the dump of a schema, for example, sets an empty search_path.
        await connection.script('RESET ALL; RESET ROLE')
        await table.record(migration, appliedAt)
      },
    }
  }
}

async function runScript(connection: MigrationConnection, sql: string): Promise<void> {
  const startMs = performance.now()
  try {
    await connection.script(sql)
  } catch (thrown) {
    if (!(thrown instanceof DbError)) throw thrown
    const error = new DbError(thrown.kind, `${thrown.message}${adviceFor(thrown.cause)}`, { cause: thrown.cause })
    if (error.isPassing) throw error
    const state = sqlStateOf(error.cause)
    const replay = {
      dialect: POSTGRES_DIALECT,
      tookMs: performance.now() - startMs,
      begin: () => connection.script('ROLLBACK; BEGIN; SET LOCAL statement_timeout = 0'),
      run: (statement: string) => connection.script(statement),
      isSame: (other: unknown) => other instanceof DbError && sqlStateOf(other.cause) === state,
    }
    throw faultAt(thrown.cause, sql, error) ?? (await failedStatement(sql, error, replay)) ?? error
  }
}

/** By the position that the server tells. It counts characters from 1, over the whole text. */
function faultAt(cause: unknown, sql: string, error: DbError): ScriptFault | null {
  const position = Number((cause as { position?: unknown } | undefined)?.position)
  if (!(position > 0)) return null
  const offset = [...sql].slice(0, position - 1).join('').length
  const part = statementsIn(sql, POSTGRES_DIALECT).find(({ end }) => offset < end)
  return new ScriptFault(error, offset, part === undefined ? sql : sql.slice(part.start, part.end))
}

function adviceFor(cause: unknown): string {
  if (sqlStateOf(cause) !== '25001') return ''
  return ': a migration runs in a transaction. Leave CONCURRENTLY out, or run this statement by hand'
}
