// What a database does for migrations, and the table that says which are applied.
import { DbError } from '../../core/errors/catalogue.ts'
import type { Outcome } from '../sql/database.ts'
import { controlIn, refuseControl, statementsIn } from '../sql/statement.ts'
import type { SqlDialect } from '../sql/tokens.ts'
import { ScriptFault } from './script-fault.ts'

/** What a file of SQL has. */
export interface Script {
  /** The file's text, to be run as it is. */
  readonly sql: string
  /** Why it must not be run: it is not UTF-8. Null for most. */
  readonly fault: string | null
}

/** One file of `domains/<domain>/migrations`. */
export interface Migration extends Script {
  /** `<domain>/<NNN_name>`, unique. */
  readonly id: string
  readonly domain: string
  /** Absolute. */
  readonly path: string
  /** SHA-256 of the text in hexadecimal; line ends count as LF, so a checkout with CRLF is the same file, and the line of a draft does not count. */
  readonly checksum: string
  /** `NNN_name.down.sql` beside it, which takes it back; null where there is none. */
  readonly down: Script | null
  /** Its header has `-- heddle: draft`: somebody is about to write it. */
  readonly isDraft: boolean
  /** Ids from the header's `-- depends:` lines. */
  readonly depends: readonly string[]
}

/** The operations within one transaction of a migration. */
export interface MigrationSession {
  /** Creates `_migrations (id, checksum, applied_at)` when it is missing. */
  createTable(): Promise<void>
  /** The recorded checksum as this transaction sees it, or null. */
  checksumOf(id: string): Promise<string | null>
  /** Runs the text verbatim; the database finds its statements' ends. It must not end the transaction. */
  run(sql: string): Promise<void>
  /** @param appliedAt ISO 8601 UTC */
  record(migration: Pick<Migration, 'id' | 'checksum'>, appliedAt: string): Promise<void>
  /** Removes what `record` has written. */
  forget(id: string): Promise<void>
}

/** An implementation of `db` that has migrations. */
export interface MigratingTool {
  /** Who else works on this database now, in a few words; null: nobody that can be seen. Call it before this process uses the database. */
  otherUser(): Promise<string | null>
  /** Migrates on a connection of its own. */
  migrating<T>(work: (driver: MigrationDriver) => Promise<T>): Promise<T>
}

/** A connection that is used for nothing else. */
export interface MigrationConnection {
  run(sql: string, params: readonly unknown[]): Promise<Outcome>
  /** Runs a text verbatim, which may have several statements. May be synchronous. */
  script(sql: string): void | Promise<void>
}

/** A statement is looked for by running the script again up to it, unless that would take longer than this. Milliseconds. */
const REPLAY_MAX_MS = 5000

/** A database that can be migrated, on a connection of its own. The SQL of `_migrations` is the same on every one. */
export abstract class MigrationDriver implements MigrationSession {
  readonly #connection: MigrationConnection
  readonly #dialect: SqlDialect

  constructor(connection: MigrationConnection, dialect: SqlDialect) {
    this.#connection = connection
    this.#dialect = dialect
  }

  /**
   * Runs `work` in one transaction: committed when it resolves, rolled back when it rejects. While a process is in this transaction,
   * other processes that call it wait, and then see its changes.
   */
  abstract transaction<T>(work: (session: MigrationSession) => Promise<T>): Promise<T>

  /** Removes every table with its rows, every view and whatever else was created. */
  abstract clear(): Promise<void>

  /** Why no statement may run outside of a transaction here; null: one may. */
  get aloneRefusal(): string | null {
    return null
  }

  /**
   * Runs `work` while no other process is in such a one; others wait, and are in no transaction meanwhile. `work` may call `runAlone` and
   * `transaction`. @throws DbError `timeout` when another process took too long
   */
  abstract alone<T>(work: () => Promise<T>): Promise<T>

  /** Within `alone`: runs one statement outside of a transaction. @throws DbError */
  async runAlone(script: string): Promise<void> {
    try {
      await this.sendAlone(script)
    } catch (thrown) {
      const error = this.errorOf(thrown)
      const { start, end } = statementsIn(script, this.#dialect)[0]!
      const statement = script.slice(start, end)
      throw this.toldFault(script, error) ?? new ScriptFault(error, start + this.offsetIn(statement, error), statement)
    }
  }

  /** Nothing of a statement without a transaction that has failed with this error has taken effect. */
  abstract hasLeftNothing(error: unknown): boolean

  /** @throws DbError `other` when it has none, or more than one, or one about transactions */
  requireOne(script: string): void {
    const command = controlIn(script, this.#dialect)
    if (command !== null) throw new DbError('other', `it contains ${command}: leave it out`)
    const { length } = statementsIn(script, this.#dialect)
    if (length !== 1) throw new DbError('other', `it has ${length} statements: write each into a migration of its own`)
  }

  protected abstract sendAlone(statement: string): Promise<void>

  /** There is a table `_migrations`. */
  protected abstract hasTable(): Promise<boolean>

  /** Rolls back, and begins a new transaction, which the caller rolls back. */
  protected abstract beginAgain(): void | Promise<void>

  protected abstract errorOf(thrown: unknown): DbError

  /** It has failed as the script has. */
  protected abstract isSame(thrown: unknown, error: DbError): boolean

  /** Where in a statement the error is, as far as that is known; else its beginning. */
  protected offsetIn(_statement: string, _error: DbError): number {
    return 0
  }

  /** The statement of a script that has failed, where the database tells; else null. */
  protected toldFault(_script: string, _error: DbError): ScriptFault | null {
    return null
  }

  /** The checksums in `_migrations`, by the ids. When the table is missing: none, and it is not created. */
  async applied(): Promise<Map<string, string>> {
    if (!(await this.hasTable())) return new Map()
    const { rows } = await this.#connection.run('SELECT id, checksum FROM _migrations', [])
    return new Map(rows.map(({ id, checksum }) => [String(id), String(checksum)]))
  }

  async run(script: string): Promise<void> {
    refuseControl(script, this.#dialect)
    const startMs = performance.now()
    try {
      await this.#connection.script(script)
    } catch (thrown) {
      const error = this.errorOf(thrown)
      if (error.isPassing) throw error
      const isQuick = performance.now() - startMs <= REPLAY_MAX_MS
      throw this.toldFault(script, error) ?? (isQuick ? await this.#foundFault(script, error) : null) ?? error
    }
  }

  /** Where the database does not tell, the script is run again, one statement after another. @returns null when none fails in the same way */
  async #foundFault(script: string, error: DbError): Promise<ScriptFault | null> {
    try {
      await this.beginAgain()
      for (const { start, end } of statementsIn(script, this.#dialect)) {
        const statement = script.slice(start, end)
        try {
          await this.#connection.script(statement)
        } catch (thrown) {
          if (!this.isSame(thrown, error)) return null
          return new ScriptFault(error, start + this.offsetIn(statement, error), statement)
        }
      }
    } catch {
      // The connection is lost, or another process has the lock meanwhile: the fault stays without its line.
    }
    return null
  }

  async createTable(): Promise<void> {
    await this.#connection.script(
      'CREATE TABLE IF NOT EXISTS _migrations (id TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at TEXT NOT NULL)',
    )
  }

  async checksumOf(id: string): Promise<string | null> {
    const { rows } = await this.#connection.run('SELECT checksum FROM _migrations WHERE id = $1', [id])
    return rows[0] === undefined ? null : String(rows[0].checksum)
  }

  async record({ id, checksum }: Pick<Migration, 'id' | 'checksum'>, appliedAt: string): Promise<void> {
    const row = [id, checksum, appliedAt]
    await this.#connection.run('INSERT INTO _migrations (id, checksum, applied_at) VALUES ($1, $2, $3)', row)
  }

  async forget(id: string): Promise<void> {
    await this.#connection.run('DELETE FROM _migrations WHERE id = $1', [id])
  }
}
