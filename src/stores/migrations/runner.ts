import type { LogLevel } from '../../contracts/logger.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { DbError } from '../../core/errors/db-error.ts'
import { shown } from '../../core/errors/shown-path.ts'
import { statementsIn } from '../sql/script.ts'
import { ANY_DIALECT } from '../sql/tokens.ts'
import type { AppliedMigration, Migration, MigrationDriver } from './driver.ts'
import { discoverMigrations, orderMigrations } from './files.ts'
import { scriptFaultText } from './script-fault.ts'

export type MigrationLog = (level: LogLevel, message: string, fields?: Record<string, unknown>) => void

/**
 * Applies pending migrations, each in its own transaction together with its row in `_migrations`. One without a statement stays pending.
 * @param domainsFolders folders with `<domain>/migrations/NNN_name.sql`
 * @param leavesDrafts a draft, and what comes after it, is told and not applied: somebody is about to write it
 * @returns the ids that this call applied, in their order
 * @throws MIGRATION_INVALID before anything is applied, for a cycle, a missing dependency or an applied file that has changed; and for a
 * migration that fails, which is rolled back (those before it stay applied). DbError `unavailable` or `timeout` when the failure was
 * not the migration's fault
 */
export async function migrate(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  log: MigrationLog,
  leavesDrafts = false,
): Promise<string[]> {
  const applied: string[] = []
  const left: Migration[] = []
  const all = orderMigrations(await discoverMigrations(domainsFolders))
  const waiting = await pendingOf(driver, all)
  for (const [n, migration] of waiting.entries()) {
    if (leavesDrafts && (migration.isDraft || left.some((draft) => isAfter(migration, draft)))) {
      left.push(migration)
      if (migration.isDraft)
        log(
          'WARNING',
          `Migration ${migration.id} is a draft and is not applied: write it, and remove the line \`-- heddle: draft\` (${shown(migration.path)}). A start applies it as it is`,
        )
      continue
    }
    if (statementsIn(migration.sql, ANY_DIALECT).length === 0) {
      // An editor may have begun to save it. Applied, it could not be written any more.
      log(
        'WARNING',
        `Migration ${migration.id} has no statement yet and is not applied: write it (${shown(migration.path)})`,
      )
      continue
    }
    const startMs = performance.now()
    // A terminal shows these records on one line: which migration is running, and how many there are.
    log('DEBUG', `Applying migration ${migration.id}`, { done: n, of: waiting.length })
    if (!(await apply(driver, migration, all))) continue
    applied.push(migration.id)
    const duration_ms = Math.round(performance.now() - startMs)
    log('INFO', `Applied migration ${migration.id}`, { done: n + 1, of: waiting.length, duration_ms })
  }
  return applied
}

/** True where one must be applied before the other. Both are in the order of `orderMigrations`. */
export const isAfter = ({ domain, depends }: Migration, earlier: Migration): boolean =>
  domain === earlier.domain || depends.includes(earlier.id)

/**
 * Migrations that are not applied yet, in the order in which they would be. Changes nothing.
 * @throws MIGRATION_INVALID as `migrate` does before it applies anything
 */
export async function pending(driver: MigrationDriver, domainsFolders: readonly string[]): Promise<Migration[]> {
  return pendingOf(driver, orderMigrations(await discoverMigrations(domainsFolders)))
}

async function pendingOf(driver: MigrationDriver, migrations: readonly Migration[]): Promise<Migration[]> {
  const recorded = new Map((await driver.applied()).map((row: AppliedMigration) => [row.id, row.checksum]))
  return migrations.filter((migration) => !isApplied(migration, recorded.get(migration.id) ?? null))
}

/** False when another process has applied it in the meantime. */
async function apply(driver: MigrationDriver, migration: Migration, all: readonly Migration[]): Promise<boolean> {
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
    const what = `Migration ${migration.id} failed and was rolled back`
    if (isOutside(thrown)) {
      throw new DbError(thrown.kind, `${what}: ${thrown.message} (${shown(migration.path)})`, { cause: thrown })
    }
    const others = all.filter(({ id }) => id !== migration.id)
    const message = scriptFaultText(what, thrown, migration, others)
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
    `Migration ${migration.id} was changed after it was applied: put ${shown(migration.path)} back as it was, and write a new migration; or, in development, take it back and apply it anew: npm run migrate -- redo ${migration.id}`,
  )
}
