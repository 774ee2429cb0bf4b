import type { LogLevel } from './contracts/logger.ts'
import { EXIT_USAGE, UsageFault } from './core/config/arguments.ts'
import { type CommandLine, readCommandLine } from './core/config/command-line.ts'
import {
  ConfigFaults,
  EXIT_CONFIG,
  type LoadedSettings,
  loadSettings,
  prepareEnvironment,
  takeFlightDir,
} from './core/config/load.ts'
import { HeddleError } from './core/errors/catalogue.ts'
import { messageOf } from './core/errors/description.ts'
import { ServiceProcess } from './primary/assembly/service-process.ts'
import { banner } from './primary/logging/banner.ts'
import { createLog } from './primary/logging/log-writer.ts'

const NO_POOL_SIZE =
  'UV_THREADPOOL_SIZE is not set, so the process has 4 threads for files and DNS: start it with --require ./src/preload.cjs before the loader'

const TAKEN: readonly string[] = ['REPLICA_ID_TAKEN', 'DATABASE_TAKEN']

/** Null until there is something to end in order. */
let service: ServiceProcess | null = null

/** `npm start`, `npm run dev` (`--watch`), and `npm start -- --boot-tool db`. */
async function main(): Promise<void> {
  const flightDir = takeFlightDir()
  const { isDevelopment, bootTool, settings, warnings } = load()
  prepareEnvironment()
  const logWriter = await createLog(settings)
  const started = new ServiceProcess({ settings, logWriter, isDevelopment, flightDir })
  service = started
  const { runtime } = started
  if (settings.uvThreadpoolSize === undefined) runtime.log('WARNING', NO_POOL_SIZE, 'config')
  for (const warning of warnings) runtime.log('WARNING', warning, 'config')

  if (bootTool !== null) {
    await runtime.bootOnly(bootTool)
    process.exit(0)
  }

  started.handleSignals()
  started.reportLife()
  // Loaded before it serves: what is saved from then on must be seen.
  const development = isDevelopment ? await import('./devtools/watch/development.ts') : null
  const port = await started.serve()
  const paths = runtime.host.routeList().map(({ path }) => path)
  logWriter.writeForPeople(banner({ settings, port, systemPort: runtime.systemPort, paths, isDevelopment }))
  if (development !== null) {
    const log = (level: LogLevel, message: string): void => runtime.log(level, message, 'main')
    const reload = (why: string): Promise<void> => started.reload(why)
    new development.Development({ settings, reload, migrate: () => runtime.migrate(), log }).start()
  }
  started.tellWhenReady(port)
}

/** Ends the process: its threads may be at work already. */
function exit(code: number): void {
  if (service === null) process.exit(code)
  service.end(code)
}

/** Command line and settings. The process ends when they are not valid: another start with the same would not help. */
function load(): CommandLine & LoadedSettings {
  try {
    const commandLine = readCommandLine()
    return { ...commandLine, ...loadSettings(undefined, commandLine.isDevelopment, commandLine.bootTool) }
  } catch (error) {
    if (!(error instanceof ConfigFaults || error instanceof UsageFault)) throw error
    console.error(error.message)
    process.exit(error instanceof UsageFault ? EXIT_USAGE : EXIT_CONFIG)
  }
}

main().catch((error: unknown) => {
  console.error(`heddle cannot start: ${messageOf(error)}`)
  // A replica id or a database file that is in use is a mistake in the configuration: another start does not mend it.
  if (error instanceof HeddleError && TAKEN.includes(error.code)) return exit(EXIT_CONFIG)
  // An error of the runtime explains itself by its message. Where any other error comes from, only the stack says.
  const isExplained = error instanceof HeddleError && error.code !== 'INTERNAL'
  if (!isExplained && error instanceof Error && error.stack !== undefined) console.error(error.stack)
  exit(1)
})
