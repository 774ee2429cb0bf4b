import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Settings } from '../../core/config/schema.ts'
import { migrate } from '../../stores/migrations/runner.ts'
import { type CommandDatabase, openDatabase } from './open-database.ts'

/**
 * Runs `work` on an empty database of the same kind to which all migrations are applied, and removes it: on SQLite a temporary file, on PostgreSQL
 * a database of the same server, whose user must be allowed to create one.
 */
export async function onScratchDatabase<T>(
  settings: Settings,
  work: (database: CommandDatabase) => Promise<T>,
): Promise<T> {
  const given = await openDatabase(settings, () => {})
  try {
    return given.dialect === 'sqlite' ? await onFile(settings, work) : await onServer(given, settings, work)
  } finally {
    await given.stop()
  }
}

async function onFile<T>(settings: Settings, work: (database: CommandDatabase) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-types-'))
  try {
    return await onMigrated({ ...settings, sqlitePath: join(folder, 'scratch.db') }, work)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function onServer<T>(
  given: CommandDatabase,
  settings: Settings,
  work: (database: CommandDatabase) => Promise<T>,
): Promise<T> {
  const name = `heddle_scratch_${randomBytes(6).toString('hex')}`
  await given.execute(`CREATE DATABASE ${name}`)
  try {
    return await onMigrated({ ...settings, rdbDatabase: name }, work)
  } finally {
    await given.execute(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }
}

async function onMigrated<T>(settings: Settings, work: (database: CommandDatabase) => Promise<T>): Promise<T> {
  const database = await openDatabase(settings, () => {})
  try {
    await database.migrating((driver) => migrate(driver, settings.domainsDir, () => {}))
    return await work(database)
  } finally {
    await database.stop()
  }
}
