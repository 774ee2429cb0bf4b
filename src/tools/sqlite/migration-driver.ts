import { DbError } from '../../core/errors/db-error.ts'
import type { AppliedMigration, MigrationDriver, MigrationSession } from '../../stores/migrations/migration.ts'
import type { Connection } from './connection.ts'
import { isBusy, toDbError } from './failure.ts'
import { transactionControlIn } from './sql-shape.ts'

/** Milliseconds that a process waits for another one that migrates. */
const MIGRATION_WAIT_MS = 300_000
const PAUSE_MS = 20

/** Migrations on a connection of their own. SQLite's write lock makes a second process wait. */
export class SqliteMigrations implements MigrationDriver {
  readonly #connection: Connection
  readonly #waitMs: number

  /**
   * @param connection used for nothing else, closed with this
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
      return this.#connection.run('SELECT id, checksum FROM _migrations', []).rows as unknown as AppliedMigration[]
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

  close(): void {
    this.#connection.close()
  }

  #session(): MigrationSession {
    const connection = this.#connection
    return {
      async createTable() {
        connection.script(
          'CREATE TABLE IF NOT EXISTS _migrations (id TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at TEXT NOT NULL)',
        )
      },
      async checksumOf(id) {
        const [row] = connection.run('SELECT checksum FROM _migrations WHERE id = $1', [id]).rows
        return row ? String(row.checksum) : null
      },
      async run(sql) {
        const control = transactionControlIn(sql)
        if (control) throw new DbError('other', `it contains ${control}, but a migration runs in a transaction already`)
        connection.script(sql)
      },
      async record({ id, checksum }, appliedAt) {
        connection.run('INSERT INTO _migrations (id, checksum, applied_at) VALUES ($1, $2, $3)', [
          id,
          checksum,
          appliedAt,
        ])
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
