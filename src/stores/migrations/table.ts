import type { Outcome } from '../sql/outcome.ts'
import type { MigrationSession } from './migration.ts'

/** A connection within the transaction of a migration. Both methods may be synchronous. */
export interface MigrationTableConnection {
  run(sql: string, params: readonly unknown[]): Outcome | Promise<Outcome>
  /** Runs a text verbatim. */
  script(sql: string): void | Promise<void>
}

/** Its rows are `AppliedMigration`. The table must exist. */
export const APPLIED_MIGRATIONS = 'SELECT id, checksum FROM _migrations'

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
