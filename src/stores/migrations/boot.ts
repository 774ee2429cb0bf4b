import type { Settings } from '../../core/config/schema.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { MigrationDriver } from './driver.ts'
import { type MigrationLog, migrate, pending } from './runner.ts'

/**
 * Applies pending migrations when the process starts. With DB_AUTO_MIGRATE=false it logs what is pending and changes nothing.
 * @throws as `migrate`
 */
export async function migrateOrReport(
  driver: MigrationDriver,
  { domainsDir, dbAutoMigrate }: Pick<Settings, 'domainsDir' | 'dbAutoMigrate'>,
  log: MigrationLog,
): Promise<void> {
  if (dbAutoMigrate) {
    await migrate(driver, domainsDir, log)
    return
  }
  try {
    const waiting = await pending(driver, domainsDir)
    if (waiting.length === 0) return
    log('WARNING', 'Migrations are pending, and DB_AUTO_MIGRATE is false', {
      migrations: waiting.map((migration) => migration.id),
    })
  } catch (thrown) {
    // Another process is responsible for the schema, so this one starts anyway.
    log('ERROR', messageOf(thrown))
  }
}
