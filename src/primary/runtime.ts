// The start, the reload and the stop of the primary.
import { relative } from 'node:path'
import type { LogLevel } from '../contracts/logger.ts'
import type { Readiness } from '../contracts/registry.ts'
import { processNumber } from '../core/config/checks.ts'
import { HeddleError } from '../core/errors/catalogue.ts'
import { messageOf } from '../core/errors/description.ts'
import { steadyMs } from '../core/schedule/clock.ts'
import { ClockWatch, jumpText } from '../core/schedule/clock-watch.ts'
import { Progress } from '../core/schedule/progress.ts'
import type { ThreadsTime } from '../core/schedule/waiting.ts'
import { staysInProcess, storeDatabaseOf } from '../runtime/event-store/database.ts'
import { activeTools } from '../runtime/kernel/discover.ts'
import { BootAftermath } from '../runtime/kernel/plugins.ts'
import { notePoolOrigins, poolRequests } from '../runtime/kernel/pool-requests.ts'
import type { Toolbox } from '../runtime/kernel/toolbox.ts'
import type { MigratingTool } from '../stores/migrations/driver.ts'
import { migrate } from '../stores/migrations/runner.ts'
import { openStreams } from './event-parts.ts'
import { publishOwn } from './events/event-driver.ts'
import type { Log } from './logging/process-log.ts'
import { openObservers, showPages } from './observers.ts'
import { buildParts, type Parts, type RuntimeOptions } from './parts.ts'
import { shutDown } from './shutdown.ts'
import { notOverRedis, notShared, refuseOneFile, unreadUrls } from './tools/tool-booter.ts'
import { type PrimaryHost, StrayFaults } from './tools/tool-host.ts'

/** A plugin of the primary that boots for longer holds up no other, milliseconds. */
const PATIENCE_MS = 1000
/** What a plugin of the primary has begun in its boot is waited for, for this long at most, milliseconds. */
const AFTERMATH_MS = 500
const OPERATOR_ACTED = 'runtime.operator.acted'

/** The primary thread: starts its parts (tools, events, listener, lanes), and stops them in order. */
export class Runtime {
  readonly log: Log
  readonly #options: RuntimeOptions
  readonly #parts: Parts
  /** The start is over. */
  #isStarted = false
  #isLeaving = false
  #clockWatch: ClockWatch | null = null
  /** Settles when the reload that was asked for last is over. */
  #reloaded: Promise<unknown> = Promise.resolve()

  constructor(options: RuntimeOptions) {
    this.#options = options
    this.#parts = buildParts(options, () => this.readiness())
    this.log = this.#parts.log
  }

  /** The tool host of the primary. */
  get host(): PrimaryHost {
    return this.#parts.host
  }

  get toolbox(): Toolbox {
    return this.#parts.kernel.toolbox
  }

  /** Deliveries of events that are accepted and not finished. */
  get pendingDeliveries(): number {
    return this.#parts.events.hub.pending
  }

  /** True while something that is due has not been handed out, and with `isWithRunning` while handlers and jobs run. */
  isBusy(isWithRunning: boolean): boolean {
    const { events, jobs, lanes } = this.#parts
    // A lane that has died is replaced: what is due meanwhile waits for it, and a job would be skipped.
    if (lanes.ready.length === 0) return true
    return events.durable.isBusy(isWithRunning) || events.hub.isBusy(isWithRunning) || jobs.isBusy(isWithRunning)
  }

  /** A test has moved the time: what waits for it without a timer is looked at. */
  look(): void {
    this.#parts.events.hub.subscribersChanged()
    for (const lane of this.#parts.lanes.all) lane.post({ type: 'time-moved' })
  }

  /** A test has moved the time: what is kept for less is forgotten. */
  timeMoved(): Promise<void> {
    return this.#parts.events.durable.timeMoved()
  }

  /** The port of `/system`; null when it has none of its own. */
  get systemPort(): number | null {
    return this.#parts.listener.systemPort
  }

  /** Records what somebody has done from outside by a signal. Requests under `/system` are recorded by their plugins. */
  signalled(signal: NodeJS.Signals, action: 'reload'): void {
    const acted = { action, target: null, by: 'signal', address: null, at: new Date().toISOString() }
    this.log('INFO', `An operator acted: ${action} by ${signal}`, 'main', acted)
    if (!this.#isStarted) return
    publishOwn('main', OPERATOR_ACTED, acted, (event) => this.#parts.events.driver.publish(event, null), this.log)
  }

  get isServing(): boolean {
    return this.#isStarted && this.#parts.listener.state === 'open'
  }

  /** Whether this process should get requests, and the reasons where it should not or is impaired. */
  readiness(): Readiness {
    const { dispatcher, events, health, listener, toolBooter, pool, descriptors } = this.#parts
    const { hub, streams, durable } = events
    const { bootStrict } = this.#options.settings
    const lanes = this.#parts.lanes.countByState()
    const { wanted } = this.#parts.lanes
    const busFault = streams?.fault ?? durable.fault
    const state = this.#isLeaving || listener.state === 'draining' ? 'draining' : this.#isStarted ? null : 'starting'
    const faults = [
      state,
      lanes.ready === 0 ? 'no lane is up' : null,
      ...toolBooter.reasons,
      ...this.toolbox.unreadyReasons,
      ...(bootStrict ? health.startFaults : []),
      pool.fault,
      listener.connectionLimit.fault,
      dispatcher.fault,
      descriptors.fault,
      busFault === null ? null : `event bus: ${busFault}`,
    ]
    const reasons = faults.filter((fault) => fault !== null)
    const ready = reasons.length === 0
    if (ready && lanes.ready! < wanted) reasons.push(`${wanted - lanes.ready!} of ${wanted} lanes are missing`)
    // It finishes the work that it has begun, and takes new requests as soon as there is room.
    if (hub.isCrowded) reasons.push('the event queue is crowded')
    const starved = Object.fromEntries(this.#parts.supervisor.coreShares.starved)
    return { ready, reasons, lanes, starved }
  }

  // ── start ─────────────────────────────────────────────────────────────────

  /**
   * Boots everything and serves.
   * @returns the port
   * @throws what makes a start impossible: two tools of one name, a missing folder, a port that is taken, no lane that boots
   */
  async start(options: { exclusivePort: boolean }): Promise<number> {
    const progress = new Progress('Starting', (message) => this.log('INFO', message, 'main'))
    try {
      return await this.#start(options, progress)
    } finally {
      progress.end()
    }
  }

  async #start(options: { exclusivePort: boolean }, progress: Progress): Promise<number> {
    const { settings, isDevelopment = false, onFatal } = this.#options
    const { kernel, health, toolBooter, listener, supervisor, registrar } = this.#parts
    notePoolOrigins()
    await openObservers(this.#parts, isDevelopment)
    progress.step = 'the event streams of Redis'
    if (settings.eventBusDriver === 'keyvalue_streams') await openStreams(this.#parts.events, kernel, onFatal)
    progress.step = 'the tools to load'
    await this.#installTools()
    supervisor.start()
    progress.step = () => `the tool ${this.toolbox.booting} to boot`
    await toolBooter.bootAll(isDevelopment)
    // Without the store no transaction can publish, and nothing can with EVENT_BUS_DRIVER=database.
    progress.step = 'the event store in the database'
    if (this.toolbox.get('db') !== undefined) await this.#parts.events.durable.open()
    const aftermath = new BootAftermath()
    progress.step = () => `the primary to boot ${relative('', kernel.plugins.bootingFile ?? '') || 'its plugins'}`
    const strayFaults = new StrayFaults(kernel, (...of) => this.#leaveOut(...of))
    await kernel.plugins.boot({
      barred: this.#parts.processDeaths?.barred(),
      onNext: (file) => this.#parts.flightMirror?.booting(file),
      settled: () => aftermath.over(AFTERMATH_MS, false),
      patienceMs: PATIENCE_MS,
      onLate: (plugin) => this.#joins(plugin),
    })
    this.#parts.flightMirror?.booting(null)
    this.host.settle()
    this.#dropFailedPlugins()
    health.setPlugins(this, kernel.plugins.health)
    registrar.open()
    // Lanes that were up before have their routes only now.
    registrar.changed()
    progress.step = () => supervisor.bootingNow
    await Promise.all([supervisor.booted(), aftermath.over(AFTERMATH_MS)])
    strayFaults.serving()
    if (this.#parts.lanes.ready.length === 0) throw new HeddleError('LANE_BOOT', 'No lane came up; the log says why')
    progress.step = 'the event store to open'
    await this.#parts.events.streams?.opened()
    await this.#parts.events.durable.adopt()
    progress.step = 'the listener'
    const port = await listener.listen(options.exclusivePort)
    const { library, why } = listener.serving!
    if (settings.httpListener === 'auto' && why !== null)
      this.log('WARNING', `${library} serves instead of uWebSockets.js: ${why}`, 'http')
    health.listener = listener.serving
    // Not before: it takes time from the start.
    this.#parts.recorders.history?.start()
    showPages(this.#parts, port)
    progress.step = 'onReady of the primary'
    await kernel.plugins.ready()
    registrar.serving()
    this.#parts.jobs.start()
    this.#clockWatch = new ClockWatch((jumpMs) => {
      this.log('WARNING', `${jumpText(jumpMs)}: cron jobs are planned anew; intervals and delays go on`, 'scheduler')
      this.#parts.jobs.clockJumped()
    })
    health.noteStart()
    this.#isStarted = true
    this.#parts.processDeaths?.report((event) => this.#parts.events.driver.publish(event, null))
    this.#parts.pool.start()
    this.#parts.descriptors.start()
    return port
  }

  /** A plugin of the primary that has failed is not served: what it registered before is taken back. */
  #dropFailedPlugins(): void {
    for (const [plugin, { status }] of Object.entries(this.#parts.kernel.plugins.health)) {
      if (status === 'DEAD') this.host.drop(plugin)
      if (status === 'BOOTING') this.#parts.routing.close(plugin, Date.now() + PATIENCE_MS)
    }
  }

  /** A plugin of the primary that nobody has waited for has booted, or failed. */
  #joins(plugin: string): void {
    const { kernel, health } = this.#parts
    if (kernel.plugins.health[plugin]?.status !== 'OK') this.host.drop(plugin)
    if (kernel.isBooted) this.host.settle()
    this.#parts.routing.close(plugin, 0)
    health.setPlugins(this, kernel.plugins.health)
    if (this.#isStarted) void kernel.plugins.ready([plugin])
  }

  /** A plugin of the primary has failed after its boot. */
  #leaveOut(plugin: string, reason: string): void {
    const { kernel, health } = this.#parts
    if (kernel.plugins.health[plugin]?.status !== 'OK') return
    kernel.plugins.fail(plugin, reason)
    health.setPlugins(this, kernel.plugins.health)
    this.host.drop(plugin)
  }

  /** Applies the migrations that are pending, in development. @throws as the boot of `db` */
  async migrate(): Promise<void> {
    const { domainsDir } = this.#options.settings
    const log = (level: LogLevel, message: string): void => this.log(level, message, 'db')
    const db = this.toolbox.get('db') as Partial<MigratingTool> | undefined
    await db?.migrating?.((driver) => migrate(driver, domainsDir, log, true))
    await this.#parts.toolBooter.fixed('db')
  }

  /** Boots one tool alone, without lanes, plugins or listener. @throws when it is not installed or does not boot */
  async bootOnly(tool: string): Promise<void> {
    await this.#installTools()
    const { toolbox } = this
    if (toolbox.get(tool) === undefined) {
      throw new HeddleError('TOOL_MISSING', `Missing tool: ${tool}. Installed: ${toolbox.names.join(', ')}`)
    }
    let fault: unknown
    await toolbox.boot((_, error) => {
      fault = error
    }, tool)
    const mayMigrate = this.#options.settings.dbAutoMigrate
    if (fault === undefined && tool === 'db' && mayMigrate) await this.#parts.events.durable.prepare()
    await this.#parts.kernel.stop()
    if (fault !== undefined) throw fault
  }

  async #installTools(): Promise<void> {
    const { settings } = this.#options
    const { toolbox } = this
    const folders = activeTools(settings.toolsDir, settings.tools)
    for (const warning of unreadUrls(folders, settings)) this.log('WARNING', warning, 'config')
    const isFirst = processNumber(settings) === 0 || (settings.httpReusePort && !settings.nodeAppInstance)
    if (isFirst) for (const warning of notShared(folders, settings)) this.log('WARNING', warning, 'config')
    await this.host.install(folders)
    refuseOneFile(settings, toolbox.get('db'))
    const warning = notOverRedis(settings, toolbox.get('db'))
    if (warning !== null) this.log('WARNING', warning, 'event_bus')
    if (!staysInProcess(settings, toolbox.get('db'))) return
    this.log('INFO', 'Events end with this process: no tool db is installed that could keep them', 'event_bus')
    this.#parts.events.driver = this.#parts.events.inProcess
  }

  /** Resolves when each plugin has booted, or is left out: the start does not wait for those that take long. */
  allBooted(): Promise<void> {
    return this.#parts.supervisor.slowBoot.over()
  }

  // ── reload and stop ───────────────────────────────────────────────────────

  /**
   * Replaces the lanes by new ones with the code that is on disk now, one reload after another. The old ones stay when it does not boot.
   * @returns why the old code goes on, or null
   */
  reload(): Promise<string | null> {
    const own = this.#reloaded.then(() => this.#replaceLanes())
    this.#reloaded = own
    return own
  }

  async #replaceLanes(): Promise<string | null> {
    if (!this.isServing) return 'the process is starting or stopping'
    const { events, isolation, registrar, supervisor, health, snapshots } = this.#parts
    const startedMs = steadyMs()
    let error: string | null = null
    try {
      this.#parts.processLog.forgetFaults()
      await supervisor.reload()
      events.hub.forgetNames()
      registrar.codeChanged()
      isolation.reset()
    } catch (thrown) {
      error = messageOf(thrown)
    }
    health.reloaded(error)
    snapshots.sendSoon()
    if (error === null) this.log('INFO', `Reloaded in ${steadyMs() - startedMs} ms`, 'supervisor')
    // The lanes have logged the rest of it.
    else this.log('ERROR', `Not reloaded, the old code goes on: ${withoutCode(error)}`, 'supervisor')
    return error
  }

  /** What becomes of events that are not handled when a drain has to end. */
  get #fateOfEvents(): string {
    const { driver, inProcess } = this.#parts.events
    if (driver === inProcess) return 'events end with this process, but for those of a transaction'
    const isShared = storeDatabaseOf(this.toolbox.get('db'))?.dialect !== 'sqlite'
    return `events are handed back, and ${isShared ? 'another process, or the next one,' : 'the next process'} delivers them again`
  }

  /** This process is not ready any more, and goes on serving: whoever sends requests to it has time to notice. */
  leave(): void {
    this.#isLeaving = true
  }

  /** Drains: no new work, everything accepted is finished, then all threads end. Bounded by SHUTDOWN_TIMEOUT_MS. */
  async stop(): Promise<void> {
    this.#clockWatch?.end()
    await shutDown(this.#parts, this.#options.settings.shutdownTimeoutMs, this.#fateOfEvents)
    this.#parts.processLog.requests?.flush()
    this.flushLog()
  }

  /** Writes what waits, within LOG_FLUSH_MS: the process ends. */
  flushLog(): void {
    this.#parts.processLog.output.flush()
  }

  /**
   * Ends the lanes' threads without a drain, and waits for the primary's own calls.
   * @param time that both have for it
   * @returns how many threads and calls have not ended in that time: nothing but the end of the process ends them
   */
  async abandon(time: ThreadsTime): Promise<number> {
    const threads = await this.#parts.supervisor.abandon(time)
    await time.until(() => poolRequests().length === 0)
    return threads + poolRequests().length
  }
}

/** The mistake and its place, without the lines of code and the hint how to fix it. */
function withoutCode(error: string): string {
  const lines = error.split('\n').filter((line) => !/^ {2}(?: {2}|Fix: )/.test(line))
  return lines.map((line) => (line.startsWith('  ') ? `(${line.trim()})` : line)).join(' ')
}
