import type { LogLevel } from '../../contracts/logger.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import type { Settings } from '../../core/config/schema.ts'
import { activeTools, loadTool, toolNameOf } from '../../runtime/kernel/discover.ts'
import type { MigratingTool } from '../../stores/migrations/migration.ts'
import type { SqlDatabase } from '../../stores/sql/api.ts'
import { CommandError } from '../command-error.ts'

/** What a command uses of the tool `db`. It has not booted: nothing is migrated by itself. */
export interface CommandDatabase extends SqlDatabase, MigratingTool, Pick<Tool, 'serve'> {
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
  return database
}
