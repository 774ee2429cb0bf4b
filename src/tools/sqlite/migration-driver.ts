import {
  APPLIED_MIGRATIONS,
  type AppliedMigration,
  type MigrationDriver,
  type MigrationSession,
  migrationTable,
} from '../../stores/migrations/driver.ts'
import { REPLAY_MAX_MS } from '../../stores/migrations/script-fault.ts'
import { refuseControlInMigration } from '../../stores/sql/parameters.ts'
import type { Connection } from './connection.ts'
import { failedStatement } from './failed-statement.ts'
import { isBusy, toDbError } from './failure.ts'
import { transactionControlIn } from './sql-shape.ts'

/** Milliseconds that a process waits for another one that migrates. */
const MIGRATION_WAIT_MS = 300_000
const PAUSE_MS = 20

/** Migrations on a separate connection. SQLite's write lock makes a second process wait. */
export class SqliteMigrations implements MigrationDriver {
  readonly #connection: Connection
  readonly #waitMs: number

  /**
   * @param connection used for nothing else, and closed by `close`
   * @param waitMs how long to wait for another process, in milliseconds; default 5 minutes
   */
  constructor(connection: Connection, waitMs = MIGRATION_WAIT_MS) {
    this.#connection = connection
    this.#waitMs = waitMs
  }

  async applied(): Promise<AppliedMigration[]> {
    return this.#whenFree(() => {
      const table = this.#connection.run(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_migrations'",
        [],
      )
      if (table.rows.length === 0) return []
      return this.#connection.run(APPLIED_MIGRATIONS, []).rows as unknown as AppliedMigration[]
    })
  }

  async transaction<T>(work: (session: MigrationSession) => Promise<T>): Promise<T> {
    await this.#whenFree(() => this.#connection.begin())
    try {
      const result = await work(this.#session())
      this.#connection.commit()
      return result
    } catch (thrown) {
      this.#connection.rollback()
      throw thrown
    }
  }

  async clear(): Promise<void> {
    await this.#whenFree(() => this.#connection.run('PRAGMA foreign_keys = OFF', []))
    try {
      await this.#whenFree(() => this.#connection.begin())
      for (const type of ['trigger', 'view', 'table']) this.#dropAll(type)
      this.#connection.commit()
    } catch (thrown) {
      this.#connection.rollback()
      throw toDbError(thrown)
    } finally {
      this.#connection.run('PRAGMA foreign_keys = ON', [])
    }
  }

  #dropAll(type: string): void {
    const sql =
      "SELECT name FROM sqlite_master WHERE type = $1 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid DESC"
    for (const { name } of this.#connection.run(sql, [type]).rows) {
      this.#connection.script(`DROP ${type} IF EXISTS "${String(name).replaceAll('"', '""')}"`)
    }
  }

  close(): void {
    this.#connection.close()
  }

  #session(): MigrationSession {
    const connection = this.#connection
    return {
      ...migrationTable(connection),
      async run(sql) {
        refuseControlInMigration(transactionControlIn(sql))
        const startMs = performance.now()
        try {
          connection.script(sql)
        } catch (thrown) {
          const error = toDbError(thrown)
          if (error.isPassing || performance.now() - startMs > REPLAY_MAX_MS) throw thrown
          throw failedStatement(connection, sql, error) ?? thrown
        }
      },
    }
  }

  async #whenFree<T>(work: () => T): Promise<T> {
    const deadlineMs = performance.now() + this.#waitMs
    for (;;) {
      try {
        return work()
      } catch (thrown) {
        if (!isBusy(thrown) || performance.now() >= deadlineMs) throw toDbError(thrown)
      }
      await new Promise((done) => setTimeout(done, PAUSE_MS))
    }
  }
}
