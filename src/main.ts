import { type CommandLine, CommandLineFault, readCommandLine } from './core/config/command-line.ts'
import { ConfigFaults, EXIT_CONFIG, type LoadedSettings, loadSettings, prepareEnvironment } from './core/config/load.ts'
import { HeddleError } from './core/errors/catalogue.ts'
import { messageOf } from './core/errors/wire.ts'
import { Runtime } from './primary/assembly/runtime.ts'
import { ServiceManager } from './primary/health/service-manager.ts'
import { banner } from './primary/logging/banner.ts'
import { createLog } from './primary/logging/log-writer.ts'

/** Time beyond SHUTDOWN_TIMEOUT_MS for closing everything, milliseconds. */
const SHUTDOWN_GRACE_MS = 5000
/** How often a process that is not ready checks whether it has become ready, milliseconds. */
const READY_CHECK_MS = 200

/** `npm start`, `npm run dev` (`--watch`), and `npm start -- --boot-tool db`. */
async function main(): Promise<void> {
  const { isDevelopment, bootTool, settings, warnings } = load()
  prepareEnvironment()
  const onFatal = (message: string): void => {
    runtime.log('ERROR', message, 'main')
    if (!isStopping) stop('SIGTERM', EXIT_CONFIG)
  }
  const logWriter = await createLog(settings)
  const runtime = new Runtime({ settings, logWriter, onFatal, isDevelopment })
  for (const warning of warnings) runtime.log('WARNING', warning, 'config')

  if (bootTool !== null) {
    await runtime.bootOnly(bootTool)
    process.exit(0)
  }

  const manager = new ServiceManager(settings.notifySocket, (message) => runtime.log('WARNING', message, 'main'))
  let isStopping = false
  const stop = (signal: NodeJS.Signals, exitCode = 0): void => {
    if (isStopping) process.exit(1)
    isStopping = true
    runtime.log('INFO', `${signal}: draining`, 'main')
    const told = manager.stopping('Draining')
    // The process ends even when something hangs: an onStop that never settles, or a thread in a native call.
    setTimeout(() => {
      runtime.log('ERROR', 'The drain did not end in time', 'main')
      process.exit(1)
    }, settings.shutdownTimeoutMs + SHUTDOWN_GRACE_MS).unref()
    // The service manager is told before the process is gone, in bounded time.
    Promise.all([runtime.stop(), told]).then(
      () => process.exit(exitCode),
      (error) => {
        console.error(error)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  const reload = async (why: string): Promise<void> => {
    runtime.log('INFO', `${why}: reloading the lanes`, 'main')
    void manager.reloading(why)
    const fault = await runtime.reload()
    if (!isStopping) void manager.ready(fault === null ? 'Reloaded' : `Not reloaded: ${fault}`)
  }
  process.on('SIGHUP', () => void reload('SIGHUP'))

  // Loaded before it serves: what is saved from then on must be seen.
  const development = isDevelopment ? await import('./devtools/watch/development.ts') : null
  const startedMs = performance.now()
  const port = await runtime.start({ exclusivePort: !settings.httpReusePort })
  runtime.log('INFO', `Serving on http://${settings.httpHost}:${port}`, 'main', {
    lanes: settings.lanes,
    boot_ms: Math.round(performance.now()),
    own_boot_ms: Math.round(performance.now() - startedMs),
  })
  const paths = runtime.host.routeList().map(({ path }) => path)
  logWriter.writeForPeople(banner({ settings, port, paths, isDevelopment }))
  if (development !== null) {
    new development.Development({
      settings,
      reload,
      log: (level, message) => runtime.log(level, message, 'main'),
    }).start()
  }
  const tellReady = (): void => {
    process.send?.('ready')
    void manager.ready(`Serving on port ${port}, ${settings.lanes} lanes`)
  }
  const { ready, reasons } = runtime.readiness()
  // A process manager that waits for the message keeps the old process while this one cannot take over.
  if (ready) tellReady()
  else {
    runtime.log('ERROR', `Not ready: ${reasons.join('; ')}`, 'main')
    void manager.status(`Not ready: ${reasons.join('; ')}`)
    // A server that was away may come back: then the tool boots again, or the event streams are opened.
    const look = setInterval(() => {
      if (!isStopping && !runtime.readiness().ready) return
      clearInterval(look)
      if (isStopping) return
      runtime.log('INFO', 'Ready', 'main')
      tellReady()
    }, READY_CHECK_MS)
  }
}

/** Command line and settings. The process ends when they are not valid: another start with the same would not help. */
function load(): CommandLine & LoadedSettings {
  try {
    const commandLine = readCommandLine()
    return { ...commandLine, ...loadSettings(undefined, commandLine.isDevelopment) }
  } catch (error) {
    if (!(error instanceof ConfigFaults || error instanceof CommandLineFault)) throw error
    console.error(error.message)
    process.exit(EXIT_CONFIG)
  }
}

main().catch((error: unknown) => {
  console.error(`heddle cannot start: ${messageOf(error)}`)
  // A replica id that is in use is a mistake in the configuration: another start does not mend it.
  if (error instanceof HeddleError && error.code === 'REPLICA_ID_TAKEN') process.exit(EXIT_CONFIG)
  // An error of the runtime explains itself by its message. Where any other error comes from, only the stack says.
  const isExplained = error instanceof HeddleError && error.code !== 'INTERNAL'
  if (!isExplained && error instanceof Error && error.stack !== undefined) console.error(error.stack)
  process.exit(1)
})
