// Migrations on SQLite.
import { DbError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { MigrationDriver, type MigrationSession } from '../../stores/migrations/driver.ts'
import { SQLITE_DIALECT, SqlTokens } from '../../stores/sql/tokens.ts'
import type { SqliteConnection } from './connection.ts'
import { claimFile } from './database-file.ts'
import { toDbError, whenFree } from './failure.ts'

/** The name that a message of SQLite is about. */
const NAMED =
  /^near "((?:[^"]|"(?!:))+)"|^(?:no such|unknown|duplicate) [\w ]+: "?([\w.]+)|unrecognized token: "(.+)"|^(?:table|index|view|trigger) "?([\w.]+)|has no column named (\w+)/

/** Milliseconds that a process waits for another one that migrates. */
const MIGRATION_WAIT_MS = 300_000
const PAUSE_MS = 20

/** Migrations on a separate connection. SQLite's write lock makes a second process wait. */
export class SqliteMigrations extends MigrationDriver {
  readonly #connection: SqliteConnection
  readonly #waitMs: number

  /**
   * @param connection used for nothing else, and closed by `close`
   * @param waitMs how long to wait for another process, in milliseconds; default 5 minutes
   */
  constructor(connection: SqliteConnection, waitMs = MIGRATION_WAIT_MS) {
    const run = (sql: string, params: readonly unknown[]) => this.#whenFree(() => connection.run(sql, params))
    super({ run, script: (sql) => connection.script(sql) }, SQLITE_DIALECT)
    this.#connection = connection
    this.#waitMs = waitMs
  }

  protected override async hasTable(): Promise<boolean> {
    const sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_migrations'"
    return (await this.#whenFree(() => this.#connection.run(sql, []))).rows.length > 0
  }

  override async transaction<T>(work: (session: MigrationSession) => Promise<T>): Promise<T> {
    await this.#whenFree(() => this.#connection.begin())
    try {
      const result = await work(this)
      this.#connection.commit()
      return result
    } catch (thrown) {
      this.#connection.rollback()
      throw thrown
    }
  }

  override async clear(): Promise<void> {
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

  override async alone<T>(work: () => Promise<T>): Promise<T> {
    const deadlineMs = performance.now() + this.#waitMs
    for (;;) {
      const claim = claimFile(this.#connection.path, '-alone')
      if (claim !== null) return work().finally(() => claim.close())
      if (performance.now() >= deadlineMs)
        throw new DbError('timeout', `Waited ${this.#waitMs} ms for another process that migrates this database`)
      await new Promise((done) => setTimeout(done, PAUSE_MS))
    }
  }

  protected override async sendAlone(statement: string): Promise<void> {
    try {
      await this.#whenFree(() => this.#connection.script(statement))
    } finally {
      this.#connection.script('PRAGMA foreign_keys = ON')
    }
  }

  /** A statement of SQLite takes effect as a whole or not at all. */
  override hasLeftNothing(): boolean {
    return true
  }

  close(): void {
    this.#connection.close()
  }

  protected override beginAgain(): void {
    this.#connection.begin()
  }

  protected override errorOf(thrown: unknown): DbError {
    return toDbError(thrown)
  }

  protected override isSame(thrown: unknown, error: DbError): boolean {
    return messageOf(thrown) === error.message
  }

  protected override offsetIn(statement: string, error: DbError): number {
    return faultOffset(this.#connection, statement, error.message)
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
