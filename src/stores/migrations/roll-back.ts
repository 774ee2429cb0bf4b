import { HeddleError } from '../../core/errors/catalogue.ts'
import { DOWN_SUFFIX, discoverMigrations } from './discover.ts'
import type { Migration, MigrationDriver } from './migration.ts'
import { orderMigrations } from './order.ts'
import type { MigrationLog } from './runner.ts'
import { scriptFaultText } from './script-fault.ts'

/**
 * Takes back the migrations that were applied last, in the reverse of their order, each by its `NNN_name.down.sql` and in its own transaction.
 * @param count how many
 * @returns their ids
 * @throws MIGRATION_INVALID before anything is taken back when one of them has no such file, and for one that fails, which is rolled back
 */
export async function rollBack(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  count: number,
  log: MigrationLog,
): Promise<string[]> {
  const recorded = new Set((await driver.applied()).map(({ id }) => id))
  const applied = orderMigrations(await discoverMigrations(domainsFolders)).filter(({ id }) => recorded.has(id))
  const chosen = applied.slice(Math.max(0, applied.length - count)).reverse()
  const downs = chosen.map((migration) => ({ migration, down: downOf(migration) }))
  for (const { migration, down } of downs) {
    try {
      await driver.transaction(async (session) => {
        await session.run(down)
        await session.forget(migration.id)
      })
    } catch (thrown) {
      const what = `${migration.id}.down.sql failed and was rolled back`
      const message = scriptFaultText(what, thrown, { path: downPath(migration), sql: down })
      throw new HeddleError('MIGRATION_INVALID', message, { cause: thrown })
    }
    log('INFO', `Took back migration ${migration.id}`)
  }
  return chosen.map(({ id }) => id)
}

function downOf(migration: Migration): string {
  if (migration.down !== null) return migration.down
  throw new HeddleError(
    'MIGRATION_INVALID',
    `Migration ${migration.id} cannot be taken back: write ${downPath(migration)}`,
  )
}

function downPath({ path }: Migration): string {
  return path.replace(/\.sql$/, DOWN_SUFFIX)
}
