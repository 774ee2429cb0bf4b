import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Migration, MigrationDriver } from './driver.ts'
import { DOWN_SUFFIX, discoverMigrations, orderMigrations } from './files.ts'
import { isAfter, type MigrationLog } from './runner.ts'
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
  for (const { migration, down } of downs) await revert(driver, migration, down, log)
  return chosen.map(({ id }) => id)
}

/**
 * Takes one migration back by its `NNN_name.down.sql`, and forgets it, so that it is applied anew as it is now.
 * @param id of one that is applied; undefined: the one that was changed since, or else the last one
 * @throws MIGRATION_INVALID when it is not applied, has no such file, or another one that is applied comes after it
 */
export async function takeBack(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
  id: string | undefined,
  log: MigrationLog,
): Promise<void> {
  const recorded = new Map((await driver.applied()).map((row) => [row.id, row.checksum]))
  const applied = orderMigrations(await discoverMigrations(domainsFolders)).filter((each) => recorded.has(each.id))
  const changed = applied.find((each) => recorded.get(each.id) !== each.checksum)
  const chosen = id === undefined ? (changed ?? applied.at(-1)) : applied.find((each) => each.id === id)
  if (chosen === undefined)
    throw new HeddleError('MIGRATION_INVALID', `${id ?? 'No migration'} is not applied: there is nothing to take back`)
  const later = applied.slice(applied.indexOf(chosen) + 1).find((each) => isAfter(each, chosen))
  if (later !== undefined)
    throw new HeddleError(
      'MIGRATION_INVALID',
      `${later.id} is applied and comes after ${chosen.id}: take that one back first, or begin anew: npm run migrate -- reset`,
    )
  await revert(driver, chosen, downOf(chosen), log)
}

async function revert(driver: MigrationDriver, migration: Migration, down: string, log: MigrationLog): Promise<void> {
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
