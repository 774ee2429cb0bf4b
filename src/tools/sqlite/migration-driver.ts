// Migrations on SQLite.
import { messageOf } from '../../core/errors/description.ts'
import {
  APPLIED_MIGRATIONS,
  appliedOf,
  type MigrationDriver,
  type MigrationSession,
  migrationTable,
} from '../../stores/migrations/driver.ts'
import { failedStatement } from '../../stores/migrations/script-fault.ts'
import { refuseControl } from '../../stores/sql/script.ts'
import { SQLITE_DIALECT, SqlTokens } from '../../stores/sql/tokens.ts'
import type { SqliteConnection } from './connection.ts'
import { toDbError, whenFree } from './failure.ts'

/** The name that a message of SQLite is about. */
const NAMED =
  /^near "((?:[^"]|"(?!:))+)"|^(?:no such|unknown|duplicate) [\w ]+: "?([\w.]+)|unrecognized token: "(.+)"|^(?:table|index|view|trigger) "?([\w.]+)|has no column named (\w+)/

/** Milliseconds that a process waits for another one that migrates. */
const MIGRATION_WAIT_MS = 300_000
const PAUSE_MS = 20

/** Migrations on a separate connection. SQLite's write lock makes a second process wait. */
export class SqliteMigrations implements MigrationDriver {
  readonly #connection: SqliteConnection
  readonly #waitMs: number

  /**
   * @param connection used for nothing else, and closed by `close`
   * @param waitMs how long to wait for another process, in milliseconds; default 5 minutes
   */
  constructor(connection: SqliteConnection, waitMs = MIGRATION_WAIT_MS) {
    this.#connection = connection
    this.#waitMs = waitMs
  }

  async applied(): Promise<Map<string, string>> {
    return this.#whenFree(() => {
      const table = this.#connection.run(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_migrations'",
        [],
      )
      return table.rows.length === 0 ? new Map() : appliedOf(this.#connection.run(APPLIED_MIGRATIONS, []))
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
        refuseControl(sql, SQLITE_DIALECT)
        const startMs = performance.now()
        try {
          connection.script(sql)
        } catch (thrown) {
          const error = toDbError(thrown)
          if (error.isPassing) throw thrown
          const fault = await failedStatement(sql, error, {
            dialect: SQLITE_DIALECT,
            tookMs: performance.now() - startMs,
            begin: () => connection.begin(),
            run: (statement) => connection.script(statement),
            isSame: (other) => messageOf(other) === error.message,
            offsetIn: (statement) => faultOffset(connection, statement, error.message),
          })
          throw fault ?? thrown
        }
      },
    }
  }

  #whenFree<T>(work: () => T): Promise<T> {
    return whenFree(work, this.#waitMs, PAUSE_MS)
  }
}

/** Offset of the token in a statement at which it fails; 0, its beginning, where that is not known. */
function faultOffset(connection: SqliteConnection, statement: string, fault: string): number {
  const name = NAMED.exec(fault)?.slice(1).find(Boolean)
  if (name === undefined) return 0
  const starts: { start: number; end: number }[] = []
  const tokens = new SqlTokens(statement, SQLITE_DIALECT)
  while (tokens.next()) {
    const isNamed =
      tokens.text.toLowerCase() === name.toLowerCase() || statement.slice(tokens.start, tokens.end) === name
    if (tokens.kind !== 'comment' && isNamed) starts.push({ start: tokens.start, end: tokens.end })
  }
  // What comes before a syntax error can be parsed: the first occurrence with which it cannot is the one.
  const broken = fault.startsWith('near ')
    ? starts.find(({ end }) => faultOf(() => connection.statement(statement.slice(0, end))) === fault)
    : undefined
  return (broken ?? starts[0])?.start ?? 0
}

function faultOf(work: () => unknown): string | null {
  try {
    work()
    return null
  } catch (thrown) {
    return messageOf(thrown)
  }
}
