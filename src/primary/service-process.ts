// The process around the runtime: signals, guardian, service manager, and its end.
import { rmSync } from 'node:fs'
import { EXIT_AGAIN, isStartedByNpm } from '../core/config/load.ts'
import type { Settings } from '../core/config/schema.ts'
import { killAfterMs, SHUTDOWN_GRACE_MS, stopMaxMs } from '../core/config/time-limits.ts'
import { steadyMs } from '../core/schedule/clock.ts'
import { Progress } from '../core/schedule/progress.ts'
import { ownLimit, STARVED_FACTOR, ThreadsTime } from '../core/schedule/waiting.ts'
import { ServiceManager } from '../guardian/service-manager.cjs'
import { requireFolder } from '../runtime/kernel/discover.ts'
import { requireFreePorts } from './http/listening.ts'
import type { RuntimeOptions } from './parts.ts'
import { Runtime } from './runtime.ts'
import { isDebugged } from './supervision/debugger.ts'

/** How often the process says that the loop of its primary thread turns, milliseconds. */
const ALIVE_MS = 1000
/** Crash reports that are kept. */
const CRASH_REPORTS_KEPT = 20

/** What the runtime says to the guardian. Everything else goes on to whoever has started the guardian. */
type ToGuardian =
  | { type: 'guarded'; stopMs: number; stallMs: number; crashReportsDir: string; crashReportsKept: number }
  | { type: 'alive'; isDebugged: boolean }
  | { type: 'serving' }
  /** `ok`: the code that is now on disk runs. */
  | { type: 'reloaded'; ok: boolean }
  /** This process ends in order. `again`: it is to be started again. */
  | { type: 'stopping'; again: boolean }

/**
 * All threads have this long at least to end when the process does, milliseconds of their own time. One that runs JavaScript takes 2 to 3; one
 * that loads modules, or waits for a disk, longer.
 */
const THREADS_END_MS = 1500

/**
 * Ends the process, whatever its threads do. `process.exit` joins every thread, and so waits for ever for one that is inside a native call,
 * or that waits for a file which never answers: then only SIGKILL ends the process, sent to itself. Supervisors see that signal.
 * @param leftMs what a drain has left of its time
 */
async function endProcess(exitCode: number, runtime: Runtime, leftMs = 0): Promise<void> {
  // A supervisor kills later: `killAfterMs`.
  const maxMs = Math.max(STARVED_FACTOR * THREADS_END_MS, leftMs)
  const held = await runtime.abandon(new ThreadsTime(Math.max(THREADS_END_MS, leftMs), maxMs))
  if (held > 0) {
    runtime.log(
      'ERROR',
      `${held} threads or calls do not end, for they are inside native code: SIGKILL ends the process`,
      'main',
    )
  }
  runtime.flushLog()
  if (held === 0) process.exit(exitCode)
  process.kill(process.pid, 'SIGKILL')
}

/** A terminal's Ctrl-C reaches npm and its child, and npm passes it on: the second one within this time is the same, milliseconds. */
const SAME_SIGNAL_MS = 300
/** How often a process reports within the time after which the service manager takes it for hung. */
const REPORTS_PER_WATCHDOG = 3
/** How often a process that is not ready checks whether it has become ready, milliseconds. */
const READY_CHECK_MS = 200

interface ServiceProcessOptions extends Required<Omit<RuntimeOptions, 'onFatal'>> {
  /** Other processes of the same guardian listen on the port already. */
  joinsPort: boolean
}

/** The process around the runtime: its signals, the limit of its drain, and what process managers are told. */
export class ServiceProcess {
  readonly runtime: Runtime
  readonly #options: ServiceProcessOptions
  readonly #settings: Settings
  readonly #manager: ServiceManager
  #isGuardianLost = false
  #isStopping = false
  #toldStop: Promise<void> = Promise.resolve()
  #isEnding = false

  constructor(options: ServiceProcessOptions) {
    const { settings } = options
    this.#options = options
    this.#settings = settings
    this.runtime = new Runtime({ ...options, onFatal: (message) => this.#fail(message) })
    this.#manager = new ServiceManager(settings.notifySocket, (message) => this.runtime.log('WARNING', message, 'main'))
  }

  /** SIGTERM and SIGINT drain, the second of them ends at once; SIGHUP replaces the lanes, and ends a service in development, whose terminal is closed. */
  handleSignals(): void {
    const sameSignalMs = isStartedByNpm() ? SAME_SIGNAL_MS : 0
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      let lastMs = Number.NEGATIVE_INFINITY
      process.on(signal, () => {
        const isSame = steadyMs() - lastMs < sameSignalMs
        lastMs = steadyMs()
        if (!isSame) this.#stop(signal)
      })
    }
    process.on('SIGHUP', () => {
      if (this.#options.isDevelopment) return this.endOnce('SIGHUP')
      this.runtime.signalled('SIGHUP', 'reload')
      void this.reload('SIGHUP')
    })
  }

  /** Drains and ends, unless it does so already. */
  endOnce(signal: NodeJS.Signals): void {
    if (!this.#isStopping) this.#stop(signal)
  }

  /** Tells the guardian, and the service manager three times within its limit, that the primary's loop turns. A loop that hangs is ended from outside. */
  reportLife(): void {
    if (this.#options.flightDir !== null) this.#reportToGuardian(this.#options.flightDir, stopMaxMs(this.#settings))
    const { watchdogUsec, watchdogPid = process.pid } = this.#settings
    if (watchdogUsec === undefined || watchdogPid !== process.pid) return
    let isReporting = false
    const report = async (): Promise<void> => {
      // A machine that is slow to run the notifier must not queue up reports: others wait behind them.
      if (isReporting) return
      isReporting = true
      await this.#manager.alive()
      isReporting = false
    }
    setInterval(() => void report(), watchdogUsec / 1000 / REPORTS_PER_WATCHDOG).unref()
  }

  /**
   * Says from now on to the guardian, which has started this process and starts it again, that it lives.
   * @param flightDir where the flight record is kept: a folder in memory that is there as long as the guardian is
   * @param stopMs how long its end takes at most; SIGKILL comes after that
   */
  #reportToGuardian(flightDir: string, stopMs: number): void {
    const { primaryStallMs: stallMs, crashReportsDir } = this.#settings
    this.#tell({ type: 'guarded', stopMs, stallMs, crashReportsDir, crashReportsKept: CRASH_REPORTS_KEPT })
    // Node's own report of an abort, where somebody has asked for one (`--report-on-fatalerror`), belongs to the crash report.
    if (process.report?.reportOnFatalError) process.report.directory = flightDir
    setInterval(() => this.#tell({ type: 'alive', isDebugged: isDebugged() }), ALIVE_MS).unref()
    const lost = (): void => {
      if (this.#isGuardianLost) return
      this.#isGuardianLost = true
      this.runtime.log('ERROR', 'The guardian is gone', 'main')
      if (!this.#isStopping) this.#stop('SIGTERM')
    }
    process.once('disconnect', lost)
    // The listener must not keep a drained process from its end.
    process.channel?.unref()
    if (!process.connected) lost()
  }

  /** A guardian that is gone hears nothing: `disconnect` says so. */
  #tell(message: ToGuardian): void {
    if (this.#options.flightDir !== null && process.connected) process.send?.(message, undefined, undefined, () => {})
  }

  /**
   * Starts the runtime.
   * @returns the port
   */
  async serve(): Promise<number> {
    const { httpReusePort, httpHost, lanes, processes } = this.#settings
    const startedMs = performance.now()
    // Before there are threads: one that is still loading its modules cannot be ended in order.
    this.#settings.domainsDir.forEach(requireFolder)
    await requireFreePorts(this.#settings, this.#options.joinsPort)
    const port = await this.runtime.start({ exclusivePort: !httpReusePort && processes === 1 })
    this.runtime.log('INFO', `Serving on http://${httpHost}:${port}`, 'main', {
      lanes,
      boot_ms: Math.round(performance.now()),
      own_boot_ms: Math.round(performance.now() - startedMs),
    })
    this.#tell({ type: 'serving' })
    const { systemPort } = this.runtime
    if (systemPort !== null)
      this.runtime.log('INFO', `/system is on http://${this.#settings.systemHost}:${systemPort}`, 'main')
    return port
  }

  /** Replaces the lanes. Resolves when that is over, also when it failed. */
  async reload(why: string): Promise<void> {
    this.runtime.log('INFO', `${why}: reloading the lanes`, 'main')
    void this.#manager.reloading(why)
    const fault = await this.runtime.reload()
    this.#tell({ type: 'reloaded', ok: fault === null })
    if (!this.#isStopping) void this.#manager.ready(fault === null ? 'Reloaded' : `Not reloaded: ${fault}`)
  }

  /** Tells process managers, now or as soon as it is so, that this process can take over. Until then they keep an old one. */
  tellWhenReady(port: number): void {
    const tellReady = (): void => {
      process.send?.('ready')
      void this.#manager.ready(`Serving on port ${port}, ${this.#settings.lanes} lanes`)
    }
    const { ready, reasons } = this.runtime.readiness()
    if (ready) return tellReady()
    this.runtime.log('ERROR', `Not ready: ${reasons.join('; ')}`, 'main')
    void this.#manager.status(`Not ready: ${reasons.join('; ')}`)
    const progress = new Progress('Not ready', (message) => this.runtime.log('WARNING', message, 'main'), {
      waits: ': ',
    })
    progress.step = () => this.runtime.readiness().reasons.join('; ')
    // A server that was away may come back: then the tool boots again, or the event streams are opened.
    const check = setInterval(() => {
      if (!this.#isStopping && !this.runtime.readiness().ready) return
      clearInterval(check)
      progress.end()
      if (this.#isStopping) return
      this.runtime.log('INFO', 'Ready', 'main')
      tellReady()
    }, READY_CHECK_MS)
  }

  #fail(message: string): void {
    this.runtime.log('ERROR', message, 'main')
    if (!this.#isStopping) this.#stop('SIGTERM', EXIT_AGAIN)
  }

  /** Drains and ends the process: after SHUTDOWN_DELAY_MS, in which it serves and is not ready. */
  #stop(signal: NodeJS.Signals, exitCode = 0): void {
    if (this.#isStopping) return this.end(1)
    this.#isStopping = true
    this.#tell({ type: 'stopping', again: exitCode === EXIT_AGAIN })
    // Settings may be longer than what the unit waits for.
    this.#toldStop = this.#manager.stopping('Draining', killAfterMs(this.#settings))
    this.runtime.leave()
    const { shutdownDelayMs } = this.#settings
    // Before it serves, or when it has to end, nobody sends anything that a delay would save.
    if (shutdownDelayMs === 0 || exitCode !== 0 || !this.runtime.isServing) return this.#drain(signal, exitCode)
    this.runtime.log('INFO', `${signal}: not ready, serving for ${shutdownDelayMs} ms more`, 'main')
    setTimeout(() => this.#drain(signal, exitCode), shutdownDelayMs)
  }

  #drain(signal: NodeJS.Signals, exitCode: number): void {
    this.runtime.log('INFO', `${signal}: draining`, 'main')
    const deadlineMs = steadyMs() + this.#settings.shutdownTimeoutMs
    // The process ends even when something hangs: an onStop that never settles, or a thread in a native call.
    const limit = (): unknown =>
      ownLimit(this.#settings.shutdownTimeoutMs + SHUTDOWN_GRACE_MS, () => {
        if (isDebugged()) return limit()
        this.runtime.log('ERROR', 'The drain did not end in time', 'main')
        this.end(1)
      })
    limit()
    // The service manager is told before the process is gone, in bounded time.
    Promise.all([this.runtime.stop(), this.#toldStop]).then(
      () => this.end(exitCode, deadlineMs - steadyMs()),
      (error) => {
        console.error(error)
        this.end(1)
      },
    )
  }

  /** Ends the process now, without a drain. @param leftMs that its threads have for it, where that is more than usual */
  end(exitCode: number, leftMs?: number): void {
    if (this.#isEnding) return
    this.#isEnding = true
    // Nobody else removes it.
    if (this.#isGuardianLost) rmSync(this.#options.flightDir!, { recursive: true, force: true })
    void endProcess(exitCode, this.runtime, leftMs)
  }
}
