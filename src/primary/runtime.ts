import type { LogLevel } from '../contracts/logger.ts'
import type { Readiness } from '../contracts/registry.ts'
import { processNumber } from '../core/config/checks.ts'
import type { Settings } from '../core/config/schema.ts'
import { HeddleError } from '../core/errors/catalogue.ts'
import { steadyMs } from '../core/schedule/steady-time.ts'
import { until } from '../core/schedule/waiting.ts'
import type { FixFacts } from '../runtime/advice/tool-names.ts'
import { threadEffects } from '../runtime/effects/thread-effects.ts'
import { useCookieSecrets } from '../runtime/endpoint/cookies.ts'
import { logDatabaseOf, staysInProcess } from '../runtime/event-log/log-database.ts'
import type { LaneServices } from '../runtime/host/services.ts'
import { activeTools } from '../runtime/kernel/discover.ts'
import { BootAftermath } from '../runtime/kernel/plugins.ts'
import { notePoolOrigins, poolRequests, poolUses } from '../runtime/kernel/pool-requests.ts'
import type { Toolbox } from '../runtime/kernel/toolbox.ts'
import type { MigratingTool } from '../stores/migrations/driver.ts'
import { migrate } from '../stores/migrations/runner.ts'
import { CLAIM_MEMORY_BYTES } from '../transport/memory/claim-memory.ts'
import { LOG_MEMORY_BYTES } from '../transport/memory/log-memory.ts'
import { createMetricsRing } from '../transport/memory/metrics-ring.ts'
import { createNameTable } from '../transport/memory/name-table.ts'
import { createStatusTable } from '../transport/memory/words.ts'
import { assembleEvents, type EventParts, openStreams } from './event-parts.ts'
import { publishOwn } from './events/own-events.ts'
import { Descriptors } from './health/descriptors.ts'
import { readinessOf } from './health/health.ts'
import { PoolProbe } from './health/pool-probe.ts'
import { processCounters } from './health/process-counters.ts'
import { routeInfo } from './http/routes.ts'
import { assembleHttp, type HttpParts } from './http-parts.ts'
import { Jobs } from './jobs/jobs.ts'
import type { LogWriter } from './logging/log-writer.ts'
import { type Log, ProcessLog } from './logging/process-log.ts'
import { Observers } from './observers.ts'
import { shutDown } from './shutdown.ts'
import { FlightMirror } from './supervision/crash-report.ts'
import { Guilt } from './supervision/guilt.ts'
import { LaneRegistrar } from './supervision/lane-registrar.ts'
import { LaneSet } from './supervision/lane-set.ts'
import { ProcessDeaths } from './supervision/process-deaths.ts'
import { Reloads } from './supervision/replacement.ts'
import { RequestPlacement } from './supervision/request-placement.ts'
import { StrayFaults } from './supervision/stray-faults.ts'
import { Supervisor } from './supervision/supervisor.ts'
import { assembleTools, type ToolParts } from './tool-parts.ts'
import { notShared, refuseOneFile, unreadUrls } from './tools/config-warnings.ts'
import { keptRequests, PrimaryToolHost } from './tools/tool-host.ts'

/** A plugin of the primary that boots for longer holds up no other, milliseconds. */
const PATIENCE_MS = 1000
/** What a plugin of the primary has begun in its boot is waited for, for this long at most, milliseconds. */
const AFTERMATH_MS = 500
const OPERATOR_ACTED = 'runtime.operator.acted'

export interface RuntimeOptions {
  settings: Settings
  logWriter: LogWriter
  /** Called with the reason when this process must end. */
  onFatal: (message: string) => void
  /** Somebody changes the code while the process runs, and waits for each change. */
  isDevelopment?: boolean
  /** The guardian's folder for what is in flight; null without a guardian. */
  flightDir?: string | null
}

/** The primary thread: puts its parts together (tools, events, listener, lanes), starts them, and stops them in order. */
export class Runtime {
  readonly log: Log
  /** The tool host of the primary. */
  readonly host: PrimaryToolHost
  readonly #options: RuntimeOptions
  readonly #events: EventParts
  readonly #tools: ToolParts
  readonly #http: HttpParts
  readonly #jobs: Jobs
  readonly #lanes: LaneSet
  readonly #registrar: LaneRegistrar
  readonly #supervisor: Supervisor
  readonly #reloads: Reloads
  readonly #pool: PoolProbe
  readonly #descriptors: Descriptors
  /** Null without a guardian. */
  readonly #processDeaths: ProcessDeaths | null
  /** Null without a guardian. */
  readonly #flightMirror: FlightMirror | null
  readonly #observers: Observers
  readonly #processLog: ProcessLog
  /** The start is over. */
  #isStarted = false
  #isLeaving = false

  constructor(options: RuntimeOptions) {
    this.#options = options
    const { settings, logWriter, isDevelopment = false, flightDir = null } = options
    const shared = {
      metrics: createMetricsRing(),
      names: createNameTable(),
      statuses: createStatusTable(),
      log: new SharedArrayBuffer(LOG_MEMORY_BYTES),
      claims: new SharedArrayBuffer(CLAIM_MEMORY_BYTES),
      tools: {},
    }
    const lanes = new LaneSet(settings.lanes)
    const processLog = new ProcessLog(logWriter, settings)
    const { log } = processLog
    const number = processNumber(settings)
    const processDeaths = flightDir === null ? null : new ProcessDeaths(settings.crashReportsDir, log, number)
    const events: EventParts = assembleEvents({
      settings,
      deathsOfEvent: processDeaths === null ? null : (id) => processDeaths.ofEvent(id),
      logMemory: shared.log,
      db: () => tools.kernel.toolbox.get('db'),
      log,
      lanes,
      onReplicaLost: options.onFatal,
    })
    const tools: ToolParts = assembleTools({ settings, shared, processLog, events, lanes })
    const flightMirror = flightDir === null ? null : new FlightMirror(flightDir)
    const facts = (): FixFacts => tools.kernel.plugins.facts
    const http = assembleHttp({
      settings,
      log,
      hub: events.hub,
      facts,
      flight: flightMirror?.primary ?? null,
      isBooting: () => tools.health.isBooting,
    })
    useCookieSecrets(settings)
    http.localWorker.server.effects = threadEffects({
      settings,
      claims: shared.claims,
      toolbox: () => tools.kernel.toolbox,
      accompany: (plugin) => events.bus.beginTransaction(plugin),
      opened: () => events.eventLog.opened(),
      log: (message, plugin, fields) => log('ERROR', message, plugin, fields),
    }).requests
    const guilt = new Guilt({
      routing: http.routing,
      lanes,
      // A lane reads streams by itself, and ahead: no lane reads for it, and other processes do.
      onStalling: (plugin, isStalling) => events.streams?.pausePlugin(plugin, isStalling, 'stalling'),
      onCircuit: (plugin, open) => {
        http.routing.close(plugin, open?.untilMs ?? 0)
        events.hub.pausePlugin(plugin, open !== null)
        events.streams?.pausePlugin(plugin, open !== null)
        tools.health.setCircuit(plugin, open?.reason ?? null)
        if (open !== null) log('ERROR', `Plugin ${plugin}: ${open.reason}`, 'supervisor')
        else log('WARNING', `Plugin ${plugin} is tried again`, 'supervisor')
      },
      onChange: () => placement.place(),
      log: (level, message) => log(level, message, 'supervisor'),
    })
    const placement = new RequestPlacement(lanes, http, events, guilt)
    processDeaths?.setAside(guilt.circuits)
    const jobs = new Jobs({
      enabled: settings.schedulerEnabled,
      lanes: () => lanes.ready,
      isPaused: (plugin) => guilt.circuits.isOpen(plugin),
      database: () => {
        const database = logDatabaseOf(tools.kernel.toolbox.get('db'))
        // Which process has the event log of a file says nothing of the jobs.
        return database?.dialect === 'sqlite' || events.durable.isOpen ? database : null
      },
      isStored: () => logDatabaseOf(tools.kernel.toolbox.get('db')) !== null,
      log: (level, message, fields) => log(level, message, 'scheduler', fields),
    })
    const { bus } = events
    const services: LaneServices = {
      lanes: () => lanes.info(),
      readiness: () => this.readiness(),
      counters: () => processCounters(logWriter.output, http, events.hub),
      routeList: () => http.routing.table.list().map(routeInfo),
      jobs: () => jobs.list(),
      ...keptRequests(() => this.#observers.history),
      requestFor: (request, timeoutMs) => bus.requestFor(request, timeoutMs),
      history: () => bus.history(),
      topology: () => bus.topology(),
      deadLetters: (page) => bus.deadLetters(page),
      replayDeadLetter: (id) => bus.replayDeadLetter(id),
      editLetter: (id, json, keys) => bus.editLetter(id, json, keys),
      deleteDeadLetter: (id) => bus.deleteDeadLetter(id),
    }
    const host = new PrimaryToolHost(tools.kernel, services, {
      bus,
      local: http.localWorker,
      routing: http.routing,
      log,
      addRequestSink: (sink) => http.requestSinks.add(sink),
      dump: () => tools.health.dump(),
      setTool: (tool, status, message) => tools.health.setTool(tool, status, message),
      addJob: (job) => jobs.addLocal(job),
    })
    const pool = new PoolProbe({
      stallMs: settings.poolStallMs,
      askThreads: () => {
        pool.report('primary', poolUses())
        for (const lane of lanes.all) lane.post({ type: 'pool-uses' })
      },
      onHeld: (reason) => log('ERROR', `Not ready: ${reason}`, 'main'),
      onFree: (heldMs) => log('INFO', `The thread pool serves again, after ${Math.round(heldMs)} ms`, 'main'),
    })
    const descriptors = new Descriptors({
      connections: http.connectionLimit,
      log,
      askLanes: () => {
        for (const lane of lanes.all) lane.post({ type: 'open-files' })
      },
      isThere: (lane) => lanes.all.includes(lane),
      end: (lane, holder) => void supervisor.endHolder(lane, holder),
    })
    const registrar = new LaneRegistrar({
      domainsDir: settings.domainsDir,
      shared,
      lanes,
      processLog,
      events,
      tools,
      http,
      jobs,
      guilt,
      placement,
      services,
      pool,
      descriptors,
      history: () => this.#observers.history,
      flightMirror,
    })
    const supervisor = new Supervisor(lanes, registrar, {
      settings,
      shared,
      isDevelopment,
      tracing: () => this.#observers.tracing,
      history: () => this.#observers.history,
      barred: processDeaths?.barred() ?? {},
      pastDeaths: (index) => processDeaths?.ofLane(index) ?? [],
      flightMirror,
    })
    this.#reloads = new Reloads({
      isServing: () => this.isServing,
      replace: () => {
        logWriter.forgetFaults()
        return supervisor.reload()
      },
      onNewCode: () => {
        events.hub.forgetNames()
        registrar.codeChanged()
        guilt.reset()
      },
      onEnd: (info) => {
        tools.health.reload = info
        tools.snapshots.sendSoon()
      },
      log: (level, message) => log(level, message, 'supervisor'),
    })
    this.log = log
    this.#processLog = processLog
    this.host = host
    this.#events = events
    this.#tools = tools
    this.#http = http
    this.#jobs = jobs
    const isGuarded = flightDir !== null
    this.#observers = new Observers({ settings, log, logWriter, processLog, tools, http, events, jobs, isGuarded })
    this.#lanes = lanes
    this.#registrar = registrar
    this.#supervisor = supervisor
    this.#pool = pool
    this.#descriptors = descriptors
    this.#processDeaths = processDeaths
    this.#flightMirror = flightMirror
  }

  get toolbox(): Toolbox {
    return this.#tools.kernel.toolbox
  }

  /** Deliveries of events that are accepted and not finished. */
  get pendingDeliveries(): number {
    return this.#events.hub.pending
  }

  /** The port of `/system`; null when it has none of its own. */
  get systemPort(): number | null {
    return this.#http.listener.systemPort
  }

  /** Records what somebody has done from outside by a signal. Requests under `/system` are recorded by their plugins. */
  signalled(signal: NodeJS.Signals, action: 'reload'): void {
    const acted = { action, target: null, by: 'signal', address: null, at: new Date().toISOString() }
    this.log('INFO', `An operator acted: ${action} by ${signal}`, 'main', acted)
    if (!this.#isStarted) return
    publishOwn('main', OPERATOR_ACTED, acted, (event) => this.#events.driver.publish(event, null), this.log)
  }

  get isServing(): boolean {
    return this.#isStarted && this.#http.listener.state === 'open'
  }

  readiness(): Readiness {
    const { hub, streams, durable } = this.#events
    const { eventBusDriver, processes } = this.#options.settings
    // Several processes that were asked for were told so.
    const isTaken = durable.isTaken && processes === 1
    const logFault = eventBusDriver === 'database' || isTaken ? durable.fault : null
    const faults = [
      ...this.#tools.toolBooter.reasons,
      ...this.toolbox.unreadyReasons,
      ...(this.#options.settings.bootStrict ? this.#tools.health.startFaults : []),
      this.#pool.fault,
      this.#http.connectionLimit.fault,
      this.#descriptors.fault,
    ]
    const isDraining = this.#isLeaving || this.#http.listener.state === 'draining'
    return readinessOf({
      lanes: this.#lanes.countByState(),
      lanesWanted: this.#lanes.wanted,
      state: isDraining ? 'draining' : this.#isStarted ? null : 'starting',
      faults: faults.filter((fault) => fault !== null),
      busFault: streams?.fault ?? logFault,
      wasBusOpen: !isTaken && (streams?.wasOpen ?? durable.isUsable),
      isCrowded: hub.isCrowded,
    })
  }

  // ── start ─────────────────────────────────────────────────────────────────

  /**
   * Boots everything and serves.
   * @returns the port
   * @throws what makes a start impossible: two tools of one name, a missing folder, a port that is taken, no lane that boots
   */
  async start(options: { exclusivePort: boolean }): Promise<number> {
    const { settings, isDevelopment = false, onFatal } = this.#options
    const { kernel, health, toolBooter } = this.#tools
    const supervisor = this.#supervisor
    const registrar = this.#registrar
    notePoolOrigins()
    const { listener } = this.#http
    await this.#observers.open(isDevelopment)
    if (settings.eventBusDriver === 'keyvalue_streams') {
      await openStreams(this.#events, {
        settings,
        log: this.log,
        deliveries: this.#observers.deliveries,
        onReplicaLost: onFatal,
      })
    }
    await this.#installTools()
    supervisor.start()
    await toolBooter.bootAll(isDevelopment)
    await this.#openLog()
    const aftermath = new BootAftermath()
    const strayFaults = new StrayFaults({
      plugins: kernel.plugins,
      log: this.log,
      leaveOut: (...of) => this.#leaveOut(...of),
    })
    await kernel.plugins.boot(settings.domainsDir, 'primary', {
      barred: this.#processDeaths?.barred(),
      onNext: (file) => this.#flightMirror?.booting(file),
      onUnguarded: (setup) => this.#http.localWorker.server.hooks.bar(setup),
      settled: () => aftermath.over(AFTERMATH_MS, false),
      patienceMs: PATIENCE_MS,
      onLate: (plugin) => this.#joins(plugin),
    })
    this.#flightMirror?.booting(null)
    this.host.settle()
    this.#dropFailedPlugins()
    health.setPlugins(this, kernel.plugins.health)
    registrar.open()
    // Lanes that were up before have their routes only now.
    registrar.changed()
    await Promise.all([supervisor.booted(), aftermath.over(AFTERMATH_MS)])
    strayFaults.serving()
    if (this.#lanes.ready.length === 0) throw new HeddleError('LANE_BOOT', 'No lane came up; the log says why')
    await this.#events.streams?.opened()
    await this.#events.durable.adopt()
    const port = await listener.listen(options.exclusivePort)
    health.listener = listener.serving
    // Not before: it takes time from the start.
    this.#observers.history?.start()
    this.#observers.serving(port)
    await kernel.plugins.ready()
    registrar.serving()
    this.#jobs.start()
    health.noteStart()
    this.#isStarted = true
    this.#processDeaths?.report((event) => this.#events.driver.publish(event, null))
    this.#pool.start()
    this.#descriptors.start()
    return port
  }

  /** Without the log no transaction can publish, and nothing can with EVENT_BUS_DRIVER=database. */
  async #openLog(): Promise<void> {
    if (this.toolbox.get('db') !== undefined) await this.#events.durable.open()
  }

  /** A plugin of the primary that has failed is not served: what it registered before is taken back. */
  #dropFailedPlugins(): void {
    for (const [plugin, { status }] of Object.entries(this.#tools.kernel.plugins.health)) {
      if (status === 'DEAD') this.#drop(plugin)
      if (status === 'BOOTING') this.#http.routing.close(plugin, Date.now() + PATIENCE_MS)
    }
  }

  /** A plugin of the primary that nobody has waited for has booted, or failed. */
  #joins(plugin: string): void {
    const { kernel, health } = this.#tools
    if (kernel.plugins.health[plugin]?.status !== 'OK') this.#drop(plugin)
    if (this.host.isBooted) this.host.settle()
    this.#http.routing.close(plugin, 0)
    health.setPlugins(this, kernel.plugins.health)
    if (this.#isStarted) void kernel.plugins.ready([plugin])
  }

  #drop(plugin: string): void {
    this.#http.routing.drop(plugin)
    this.#events.bus.drop(plugin)
    this.#jobs.dropLocal(plugin)
  }

  /** A plugin of the primary has failed after its boot. */
  #leaveOut(plugin: string, reason: string): void {
    const { kernel, health } = this.#tools
    if (kernel.plugins.health[plugin]?.status !== 'OK') return
    kernel.plugins.fail(plugin, reason)
    health.setPlugins(this, kernel.plugins.health)
    this.#drop(plugin)
  }

  /** Applies the migrations that are pending, in development. @throws as the boot of `db` */
  async migrate(): Promise<void> {
    const { domainsDir } = this.#options.settings
    const log = (level: LogLevel, message: string): void => this.log(level, message, 'db')
    const db = this.toolbox.get('db') as Partial<MigratingTool> | undefined
    await db?.migrating?.((driver) => migrate(driver, domainsDir, log, true))
    await this.#tools.toolBooter.fixed('db')
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
    if (fault === undefined && tool === 'db' && mayMigrate) await this.#events.durable.prepare()
    await this.#tools.kernel.stop()
    if (fault !== undefined) throw fault
  }

  async #installTools(): Promise<void> {
    const { kernel } = this.#tools
    const { settings } = this.#options
    const folders = activeTools(settings.toolsDir, settings.tools)
    for (const warning of unreadUrls(folders, settings)) this.log('WARNING', warning, 'config')
    if (processNumber(settings) === 0)
      for (const warning of notShared(folders, settings)) this.log('WARNING', warning, 'config')
    await kernel.toolbox.install(folders, kernel.runtimeFactory(this.host))
    refuseOneFile(settings, kernel.toolbox.get('db'))
    this.#http.localWorker.server.sockets.isRevoked = (claims) => kernel.toolbox.isRevoked(claims)
    if (!staysInProcess(settings, kernel.toolbox.get('db'))) return
    this.log('INFO', 'Events end with this process: no tool db is installed that could keep them', 'event_bus')
    this.#events.driver = this.#events.inProcess
  }

  /** Resolves when each plugin has booted, or is left out: the start does not wait for those that take long. */
  allBooted(): Promise<void> {
    return this.#supervisor.allBooted()
  }

  // ── reload and stop ───────────────────────────────────────────────────────

  /**
   * Replaces the lanes by new ones with the code that is on disk now. The old ones stay when it does not boot.
   * @returns why the old code goes on, or null
   */
  reload(): Promise<string | null> {
    return this.#reloads.next()
  }

  /** What becomes of events that are not handled when a drain has to end. */
  get #fateOfEvents(): string {
    const { driver, inProcess } = this.#events
    if (driver === inProcess) return 'events end with this process, but for those of a transaction'
    const isShared = logDatabaseOf(this.toolbox.get('db'))?.dialect !== 'sqlite'
    return `events are handed back, and ${isShared ? 'another process, or the next one,' : 'the next process'} delivers them again`
  }

  /** This process is not ready any more, and goes on serving: whoever sends requests to it has time to notice. */
  leave(): void {
    this.#isLeaving = true
  }

  /** Drains: no new work, everything accepted is finished, then all threads end. Bounded by SHUTDOWN_TIMEOUT_MS. */
  async stop(): Promise<void> {
    await shutDown({
      shutdownTimeoutMs: this.#options.settings.shutdownTimeoutMs,
      events: this.#events,
      tools: this.#tools,
      http: this.#http,
      jobs: this.#jobs,
      lanes: this.#lanes,
      supervisor: this.#supervisor,
      tracing: () => this.#observers.tracing,
      history: () => this.#observers.history,
      worksOf: (lane) => this.#registrar.workInFlight(lane),
      fateOfEvents: this.#fateOfEvents,
      log: (level, message) => this.log(level, message, 'main'),
    })
    this.#processLog.requests?.flush()
    this.#options.logWriter.flush()
  }

  /**
   * Ends the lanes' threads without a drain, and waits for the primary's own calls.
   * @returns how many threads and calls have not ended in that time: nothing but the end of the process ends them
   */
  async abandon(withinMs: number): Promise<number> {
    const deadlineMs = steadyMs() + withinMs
    const threads = await this.#supervisor.abandon(deadlineMs)
    await until(() => poolRequests().length === 0, deadlineMs)
    return threads + poolRequests().length
  }
}
