import type { LogLevel } from '../../contracts/logger.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { DbError } from '../../core/errors/db-error.ts'
import { messageOf } from '../../core/errors/description.ts'
import { discoverMigrations } from './discover.ts'
import type { AppliedMigration, Migration, MigrationDriver } from './migration.ts'
import { orderMigrations } from './order.ts'

export type MigrationLog = (level: LogLevel, message: string, fields?: Record<string, unknown>) => void

/**
 * Applies pending migrations, each in its own transaction together with its row in `_migrations`.
 * @param domainsFolders folders with `<domain>/migrations/NNN_name.sql`
 * @returns the ids that this call applied, in their order
 * @throws MIGRATION_INVALID before anything is applied, for a cycle, a missing dependency or an applied file that has changed; and for a
 * migration that fails, which is rolled back (those before it stay applied). DbError `unavailable` or `timeout` when the failure was
 * not the migration's fault
 */
export async function migrate(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  log: MigrationLog,
): Promise<string[]> {
  const applied: string[] = []
  const waiting = await pending(driver, domainsFolders)
  for (const [n, migration] of waiting.entries()) {
    const startMs = performance.now()
    // A terminal shows these records on one line: which migration is running, and how many there are.
    log('DEBUG', `Applying migration ${migration.id}`, { done: n, of: waiting.length })
    if (!(await apply(driver, migration))) continue
    applied.push(migration.id)
    const duration_ms = Math.round(performance.now() - startMs)
    log('INFO', `Applied migration ${migration.id}`, { done: n + 1, of: waiting.length, duration_ms })
  }
  return applied
}

/**
 * Migrations that are not applied yet, in the order in which they would be. Changes nothing.
 * @throws MIGRATION_INVALID as `migrate` does before it applies anything
 */
export async function pending(driver: MigrationDriver, domainsFolders: readonly string[]): Promise<Migration[]> {
  const migrations = orderMigrations(await discoverMigrations(domainsFolders))
  const recorded = new Map((await driver.applied()).map((row: AppliedMigration) => [row.id, row.checksum]))
  return migrations.filter((migration) => !isApplied(migration, recorded.get(migration.id) ?? null))
}

/** False when another process has applied it in the meantime. */
async function apply(driver: MigrationDriver, migration: Migration): Promise<boolean> {
  try {
    return await driver.transaction(async (session) => {
      await session.createTable()
      if (isApplied(migration, await session.checksumOf(migration.id))) return false
      await session.run(migration.sql)
      await session.record(migration, new Date().toISOString())
      return true
    })
  } catch (thrown) {
    if (thrown instanceof HeddleError && thrown.code === 'MIGRATION_INVALID') throw thrown
    const message = `Migration ${migration.id} failed and was rolled back: ${messageOf(thrown)} (${migration.path})`
    if (isOutside(thrown)) throw new DbError(thrown.kind, message, { cause: thrown })
    throw new HeddleError('MIGRATION_INVALID', message, { cause: thrown })
  }
}

/** The migration itself is right: the server was lost, or another process held a lock that it needs. */
function isOutside(thrown: unknown): thrown is DbError {
  return thrown instanceof DbError && thrown.isPassing
}

function isApplied(migration: Migration, recorded: string | null): boolean {
  if (recorded === null) return false
  if (recorded === migration.checksum) return true
  throw new HeddleError(
    'MIGRATION_INVALID',
    `Migration ${migration.id} was changed after it was applied: put ${migration.path} back as it was, and write a new migration`,
  )
}
