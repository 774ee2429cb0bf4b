import type { MigrationDriver } from './driver.ts'
import { discoverMigrations, orderMigrations } from './files.ts'

/** `changed`: its text is another one than that which was applied. `missing`: it was applied, and has no file any more. */
export type MigrationState = 'applied' | 'pending' | 'changed' | 'missing'

export interface MigrationStatus {
  id: string
  state: MigrationState
  /** It has a `NNN_name.down.sql`. */
  hasDown: boolean
}

/** All migrations, in the order in which they are applied; those without a file at the end. @throws MIGRATION_INVALID as `migrate` does */
export async function migrationStatus(
  driver: MigrationDriver,
  domainsFolders: readonly string[],
): Promise<MigrationStatus[]> {
  const recorded = new Map((await driver.applied()).map(({ id, checksum }) => [id, checksum]))
  const found = orderMigrations(await discoverMigrations(domainsFolders)).map(({ id, checksum, down }) => {
    const known = recorded.get(id)
    recorded.delete(id)
    const state: MigrationState = known === undefined ? 'pending' : known === checksum ? 'applied' : 'changed'
    return { id, state, hasDown: down !== null }
  })
  const missing = [...recorded.keys()].sort().map((id) => ({ id, state: 'missing' as const, hasDown: false }))
  return [...found, ...missing]
}
