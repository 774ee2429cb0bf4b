// What a database does for migrations, and the table that says which are applied.
import type { Outcome } from '../sql/database.ts'

/** One file of `domains/<domain>/migrations`. */
export interface Migration {
  /** `<domain>/<NNN_name>`, unique. */
  readonly id: string
  readonly domain: string
  /** Absolute. */
  readonly path: string
  /** The file's text, to be run as it is. */
  readonly sql: string
  /** SHA-256 of the text in hexadecimal; line ends count as LF, so a checkout with CRLF is the same file, and the line of a draft does not count. */
  readonly checksum: string
  /** The text of `NNN_name.down.sql` beside it, which takes it back; null where there is none. */
  readonly down: string | null
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

/** A database that can be migrated. */
export interface MigrationDriver {
  /** The checksums in `_migrations`, by the ids. When the table is missing: none, and it is not created. */
  applied(): Promise<Map<string, string>>
  /**
   * Runs `work` in one transaction: committed when it resolves, rolled back when it rejects. While a process is in this transaction,
   * other processes that call it wait, and then see its changes.
   */
  transaction<T>(work: (session: MigrationSession) => Promise<T>): Promise<T>
  /** Removes every table with its rows, every view and whatever else was created. */
  clear(): Promise<void>
}

/** A connection within the transaction of a migration. Both methods may be synchronous. */
interface MigrationTableConnection {
  run(sql: string, params: readonly unknown[]): Outcome | Promise<Outcome>
  /** Runs a text verbatim. */
  script(sql: string): void | Promise<void>
}

/** For `appliedOf`. The table must exist. */
export const APPLIED_MIGRATIONS = 'SELECT id, checksum FROM _migrations'

export const appliedOf = ({ rows }: Outcome): Map<string, string> =>
  new Map(rows.map(({ id, checksum }) => [String(id), String(checksum)]))

/** The part of a session that reads and writes `_migrations`: its SQL is the same on every database. */
export function migrationTable(
  connection: MigrationTableConnection,
): Pick<MigrationSession, 'createTable' | 'checksumOf' | 'record' | 'forget'> {
  return {
    async createTable() {
      await connection.script(
        'CREATE TABLE IF NOT EXISTS _migrations (id TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at TEXT NOT NULL)',
      )
    },
    async checksumOf(id) {
      const { rows } = await connection.run('SELECT checksum FROM _migrations WHERE id = $1', [id])
      return rows[0] === undefined ? null : String(rows[0].checksum)
    },
    async record({ id, checksum }, appliedAt) {
      await connection.run('INSERT INTO _migrations (id, checksum, applied_at) VALUES ($1, $2, $3)', [
        id,
        checksum,
        appliedAt,
      ])
    },
    async forget(id) {
      await connection.run('DELETE FROM _migrations WHERE id = $1', [id])
    },
  }
}
