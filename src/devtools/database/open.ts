// A database for a command: that of the application, or an empty one of its kind.

import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LogLevel } from '../../contracts/logger.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { CommandError } from '../../core/config/command-line.ts'
import type { Settings } from '../../core/config/schema.ts'
import { activeTools, loadTool, toolNameOf } from '../../runtime/kernel/discover.ts'
import type { MigratingTool } from '../../stores/migrations/driver.ts'
import { migrate } from '../../stores/migrations/runner.ts'
import type { SqlDatabase } from '../../stores/sql/database.ts'

/** What a command uses of the tool `db`. It has not booted: nothing is migrated by itself. */
export interface CommandDatabase extends SqlDatabase, MigratingTool, Pick<Tool, 'serve'>, AsyncDisposable {
  stop(): Promise<void>
}

/** The application's `db`, in this process alone. @throws CommandError where its implementation has no migrations */
export async function openDatabase(
  settings: Settings,
  log: (level: LogLevel, message: string) => void,
): Promise<CommandDatabase> {
  const folder = activeTools(settings.toolsDir, settings.tools).find((each) => toolNameOf(each) === 'db')
  if (folder === undefined) throw new CommandError('There is no tool db')
  const memory = new Map<string, SharedArrayBuffer>()
  const runtime: Partial<ToolRuntime> = {
    thread: { kind: 'primary' },
    settings: { ...settings, lanes: 1, rdbMinPool: 0 },
    env: () => undefined,
    log,
    context: () => undefined,
    callPrimary: async (method, args) => database.serve?.(method, args),
    sharedMemory: (name, byteLength) => {
      const known = memory.get(name) ?? new SharedArrayBuffer(byteLength)
      memory.set(name, known)
      return known
    },
    instrument: (target) => target,
    peer: () => undefined,
  }
  const database = (await loadTool(folder, () => runtime as ToolRuntime)) as object as CommandDatabase
  if (typeof database.migrating !== 'function') throw new CommandError(`The tool in ${folder.path} has no migrations`)
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.stop() })
}

/**
 * Runs `work` on an empty database of the same kind to which all migrations are applied, and removes it: on SQLite a temporary file, on PostgreSQL
 * a database of the same server, whose user must be allowed to create one.
 */
export async function onScratchDatabase<T>(
  settings: Settings,
  work: (database: CommandDatabase) => Promise<T>,
): Promise<T> {
  await using given = await openDatabase(settings, () => {})
  const onMigrated = async (own: Partial<Settings>): Promise<T> => {
    await using database = await openDatabase({ ...settings, ...own }, () => {})
    await database.migrating((driver) => migrate(driver, settings.domainsDir, () => {}))
    return await work(database)
  }
  if (given.dialect === 'sqlite') {
    const folder = await mkdtemp(join(tmpdir(), 'heddle-types-'))
    return await onMigrated({ sqlitePath: join(folder, 'scratch.db') }).finally(() =>
      rm(folder, { recursive: true, force: true }),
    )
  }
  const name = `heddle_scratch_${randomBytes(6).toString('hex')}`
  await given.execute(`CREATE DATABASE ${name}`)
  return await onMigrated({ rdbDatabase: name }).finally(() =>
    given.execute(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  )
}
