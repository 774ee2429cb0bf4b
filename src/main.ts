// Starts the primary: command line, settings, process.
import type { LogLevel } from './contracts/logger.ts'
import { processNumber } from './core/config/checks.ts'
import { type CommandLine, EXIT_USAGE, readCommandLine, UsageFault } from './core/config/command-line.ts'
import {
  ConfigFaults,
  EXIT_CONFIG,
  type LoadedSettings,
  loadSettings,
  prepareEnvironment,
  takeFlightDir,
  takeFollowing,
  takePortJoining,
} from './core/config/load.ts'
import { HeddleError, isMisconfigured } from './core/errors/catalogue.ts'
import { messageWithCauses, originOf } from './core/errors/description.ts'
import { endWithStarter } from './guardian/npm-parent.cjs'
import { createLog } from './primary/logging/process-log.ts'
import { banner } from './primary/logging/terminal.ts'
import { ServiceProcess } from './primary/service-process.ts'
import { again } from './stores/migrations/script-fault.ts'

const NO_POOL_SIZE =
  'UV_THREADPOOL_SIZE is not set, so the process has 4 threads for files and DNS: start it with --require ./src/preload.cjs before the loader'

const NO_GUARDIAN =
  'PROCESSES: expected 1 without the guardian, which alone starts several: start it with `npm start` and GUARDIAN=true'

/** What a fault of the start keeps from being done. */
let failed = 'heddle cannot start'
/** Null until there is something to end in order. */
let service: ServiceProcess | null = null

/** `npm start`, `npm run dev` (`--watch`), and `npm start -- --boot-tool db`. */
async function main(): Promise<void> {
  const flightDir = takeFlightDir()
  const joinsPort = takePortJoining()
  const followsParent = takeFollowing()
  const { isDevelopment, bootTool, inspector, settings, warnings } = load(flightDir !== null)
  prepareEnvironment()
  if (inspector !== null) openInspector(inspector)
  const processLog = createLog(settings)
  const started = new ServiceProcess({ settings, processLog, isDevelopment, flightDir, joinsPort })
  service = started
  const { runtime } = started
  if (settings.uvThreadpoolSize === undefined) runtime.log('WARNING', NO_POOL_SIZE, 'config')
  for (const warning of warnings) runtime.log('WARNING', warning, 'config')

  if (bootTool !== null) {
    failed = `The tool ${bootTool} cannot boot`
    again.how = 'run the migrations again'
    await runtime.bootOnly(bootTool)
    process.exit(0)
  }

  started.handleSignals()
  started.reportLife()
  if (isDevelopment) {
    const onGone = (what: string): void => {
      runtime.log('INFO', what, 'main')
      started.endOnce('SIGHUP')
    }
    endWithStarter({ followsParent, onGone })
  }
  const development = isDevelopment ? await import('./devtools/development.ts') : null
  const serving = started.serve()
  // From before the lanes load their code: whatever is saved after that is seen, and taken in once the process serves.
  if (development !== null) {
    const log = (level: LogLevel, message: string): void => runtime.log(level, message, 'main')
    const reload = (why: string): Promise<void> => serving.then(() => started.reload(why))
    const migrate = (): Promise<void> => serving.then(() => runtime.migrate())
    new development.Development({ settings, reload, migrate, log }).start(serving)
  }
  const port = await serving
  const paths = (await runtime.host.services.routeList()).map(({ path }) => path)
  // Of several processes the first says so for all.
  if (!processNumber(settings))
    processLog.writeForPeople(banner({ settings, port, systemPort: runtime.systemPort, paths, isDevelopment }))
  started.tellWhenReady(port)
}

/** Before there are threads: each of them is announced to the debugger. Node says where it listens, or why it does not. */
function openInspector({ port, host }: NonNullable<CommandLine['inspector']>): void {
  const { open, url } = process.getBuiltinModule('node:inspector')
  // An editor that has started this process has opened it already.
  if (url() === undefined) open(port, host)
}

/** Ends the process: its threads may be at work already. */
function exit(code: number): void {
  if (service === null) process.exit(code)
  service.end(code)
}

/** Command line and settings. The process ends when they are not valid: another start with the same would not help. */
function load(isGuarded: boolean): CommandLine & LoadedSettings {
  try {
    const commandLine = readCommandLine()
    const loaded = loadSettings(undefined, commandLine.isDevelopment, commandLine.bootTool)
    if (loaded.settings.processes > 1 && !isGuarded) throw new ConfigFaults([NO_GUARDIAN])
    return { ...commandLine, ...loaded }
  } catch (error) {
    if (!(error instanceof ConfigFaults || error instanceof UsageFault)) throw error
    console.error(error.message)
    process.exit(error instanceof UsageFault ? EXIT_USAGE : EXIT_CONFIG)
  }
}

main().catch((error: unknown) => {
  console.error(`${failed}: ${messageWithCauses(error)}`)
  if (isMisconfigured(error)) return exit(EXIT_CONFIG)
  // An error of the runtime explains itself by its message. Where any other error comes from, only the stack says.
  const isExplained = error instanceof HeddleError && error.code !== 'INTERNAL'
  if (!isExplained) for (const line of originOf(error)) console.error(line)
  exit(1)
})
