import type { LogLevel } from '../../contracts/logger.ts'
import type { Readiness } from '../../contracts/registry.ts'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/wire.ts'
import { ThreadKernel } from '../../runtime/kernel/thread.ts'
import type { Toolbox } from '../../runtime/kernel/toolbox.ts'
import type { ProcessTracing } from '../../tracing/primary/process-tracing.ts'
import { createMetricsRing } from '../../transport/memory/metrics-ring.ts'
import { createNameTable, NameTable } from '../../transport/memory/name-table.ts'
import { createStatusTable, StatusTable } from '../../transport/memory/status-table.ts'
import type { LogRecord, SharedMemories, ToLane } from '../../transport/messages.ts'
import { Dispatcher } from '../dispatch/dispatcher.ts'
import type { Lane } from '../dispatch/lane.ts'
import { type EventDriver, InProcessDriver } from '../events/event-driver.ts'
import { Hub } from '../events/hub.ts'
import { LaneSubscribers } from '../events/lane-subscribers.ts'
import { PrimaryBus } from '../events/primary-bus.ts'
import { RecordForwarder } from '../events/record-forwarder.ts'
import { Health } from '../health/health.ts'
import { readinessOf } from '../health/readiness.ts'
import { Listener } from '../http/listener.ts'
import { LocalWorker } from '../http/local-worker.ts'
import { Routing } from '../http/routing.ts'
import { Jobs } from '../jobs/jobs.ts'
import type { LogWriter } from '../logging/log.ts'
import { RequestLog } from '../logging/request-log.ts'
import type { StreamCoordinator } from '../streams/coordinator.ts'
import { LaneStreams } from '../streams/lane-streams.ts'
import { CircuitBreaker } from '../supervision/circuit-breaker.ts'
import { LaneDeaths } from '../supervision/lane-deaths.ts'
import { LaneRegistrar } from '../supervision/lane-registrar.ts'
import { OnReadyRunner } from '../supervision/on-ready-runner.ts'
import { Reloads } from '../supervision/reloads.ts'
import { Supervisor } from '../supervision/supervisor.ts'
import { LaneCallHandler } from '../tools/lane-call-handler.ts'
import { ToolBooter } from '../tools/tool-booter.ts'
import { PrimaryToolHost } from '../tools/tool-host.ts'
import { shutDown } from './shutdown.ts'

/** Changes of health are told to the lanes this much later, together, milliseconds. */
const SNAPSHOT_MS = 50

/** The primary thread, put together: tools, lanes, hub, plugins, listener; and taken apart again in order. */
export class Runtime {
  readonly #settings: Settings
  readonly #log: LogWriter
  readonly #onFatal: (message: string) => void
  readonly #isDeveloped: boolean
  readonly #shared: SharedMemories
  readonly #hub: Hub
  readonly #bus: PrimaryBus
  #driver: EventDriver
  #streams: StreamCoordinator | null = null
  #tracing: ProcessTracing | null = null
  readonly #instances: LaneSubscribers
  readonly #laneStreams: LaneStreams
  readonly #feeds: RecordForwarder
  readonly #local: LocalWorker
  readonly #routing: Routing
  readonly #host: PrimaryToolHost
  readonly #services: LaneCallHandler
  readonly #kernel: ThreadKernel
  readonly #health: Health
  readonly #jobs: Jobs
  readonly #dispatcher = new Dispatcher((error) =>
    this.log('ERROR', `A request that waited was not handed over: ${messageOf(error)}`, 'http', {
      stack: error instanceof Error ? error.stack : undefined,
    }),
  )
  readonly #supervisor: Supervisor
  readonly #listener: Listener
  readonly #registrar: LaneRegistrar
  readonly #circuitBreaker: CircuitBreaker
  readonly #bootWaiters: (() => void)[] = []
  readonly #toolBooter: ToolBooter
  #snapshotTimer: NodeJS.Timeout | undefined
  #isReady = false
  #isTidyDue = false
  readonly #reloads: Reloads

  /**
   * @param onFatal what to do when this process must end, and why
   * @param isDeveloped somebody changes the code meanwhile, and waits for each change
   */
  constructor(settings: Settings, log: LogWriter, onFatal: (message: string) => void, isDeveloped = false) {
    this.#onFatal = onFatal
    this.#isDeveloped = isDeveloped
    this.#settings = settings
    this.#log = log
    this.#shared = { metrics: createMetricsRing(), names: createNameTable(), statuses: createStatusTable(), tools: {} }
    this.#hub = new Hub({
      maxQueue: settings.eventBusMaxQueue,
      onQuarantine: (isWanted) => this.#supervisor.wantQuarantine(isWanted),
      onQuarantineUsed: () => this.#supervisor.renewQuarantine(),
      log: (level, message, fields) => this.log(level, message, 'event_bus', fields),
    })
    this.#driver = new InProcessDriver(this.#hub)
    this.#bus = new PrimaryBus(
      this.#hub,
      () => this.#driver,
      (thrown) => this.#kernel.sinkFault('event listener', thrown),
    )
    this.#instances = new LaneSubscribers(this.#hub)
    this.#laneStreams = new LaneStreams(this.#instances)
    this.#feeds = new RecordForwarder(this.#hub, (lane) => this.#instances.threadOf(lane))
    this.#routing = new Routing(settings.httpHandlerTimeoutMs)
    this.#local = new LocalWorker((path, plugin, requestId, thrown) =>
      this.log('ERROR', `${path} failed: ${messageOf(thrown)}`, plugin, {
        request_id: requestId,
        stack: thrown instanceof Error ? thrown.stack : undefined,
      }),
    )
    this.#kernel = new ThreadKernel({
      thread: { kind: 'primary' },
      settings,
      metrics: this.#shared.metrics,
      names: this.#shared.names,
      statuses: this.#shared.statuses,
      flight: null,
      sharedMemory: (key, byteLength) => {
        this.#shared.tools[key] ??= new SharedArrayBuffer(byteLength)
        return this.#shared.tools[key]
      },
      // As over the ring: what crosses is JSON, so that a caller cannot tell the threads apart.
      callPrimary: async (tool, method, args) => this.#kernel.toolbox.serve(tool, method, args),
      onToolStatus: (tool, status, message) => this.#health.noteTool(tool, status, message),
      writeLog: (level, message, identity, fields) => this.log(level, message, identity, fields),
    })
    this.#health = new Health({
      statuses: new StatusTable(this.#shared.statuses),
      toolIndex: (tool) => this.#kernel.toolbox.indexOf(tool),
      toolNames: () => this.#kernel.toolbox.names,
      lanes: () => this.#supervisor.countByState(),
      onChange: () => this.#snapshotSoon(),
    })
    this.#toolBooter = new ToolBooter({
      toolbox: this.#kernel.toolbox,
      health: this.#health,
      log: (level, message, tool) => this.log(level, message, tool),
    })
    this.#circuitBreaker = new CircuitBreaker((plugin, open) => {
      this.#routing.close(plugin, open?.untilMs ?? 0)
      this.#hub.pausePlugin(plugin, open !== null)
      this.#streams?.pausePlugin(plugin, open !== null)
      this.#health.setAside(plugin, open?.reason ?? null)
      if (open !== null) this.log('ERROR', `Plugin ${plugin}: ${open.reason}`, 'supervisor')
      else this.log('WARNING', `Plugin ${plugin} is tried again`, 'supervisor')
    })
    this.#jobs = new Jobs(
      settings.schedulerEnabled,
      () => this.#supervisor.ready,
      (plugin) => this.#circuitBreaker.isOpen(plugin),
      (level, message, fields) => this.log(level, message, 'scheduler', fields),
    )
    this.#registrar = new LaneRegistrar({
      routing: this.#routing,
      instances: this.#instances,
      streams: this.#laneStreams,
      feeds: this.#feeds,
      jobs: this.#jobs,
      health: this.#health,
      onReady: new OnReadyRunner(
        () => this.#supervisor.regular,
        (message) => this.log('ERROR', message, 'kernel'),
      ),
      snapshot: () => this.#snapshot(),
      log: (message) => this.log('ERROR', message, 'kernel'),
    })
    const names = new NameTable(this.#shared.names)
    const deaths = new LaneDeaths({
      domainsDir: settings.domainsDir,
      routing: this.#routing,
      registrar: this.#registrar,
      circuitBreaker: this.#circuitBreaker,
      callName: (number) => names.nameOf(number),
      publish: (event) => this.#driver.publish(event, null),
      threadGone: (threadId) => this.#kernel.toolbox.threadGone(threadId),
      log: (level, message, identity, fields) => this.log(level, message, identity, fields),
    })
    this.#supervisor = new Supervisor({
      settings,
      shared: this.#shared,
      isDevelopment: isDeveloped,
      tracing: () => this.#tracing,
      listener: {
        onMessage: (lane, message) => {
          this.#registrar.onMessage(lane, message)
          if (message.type === 'subscribe' || message.type === 'unsubscribe') this.#snapshotSoon()
        },
        onPublish: (lane, event) => this.#hub.publish(event, this.#instances.threadOf(lane)),
        onRecord: (lane, event, isReceived) => this.#streams?.record(event, this.#instances.threadOf(lane), isReceived),
        onDelivered: (id) => this.#hub.delivered(id),
        onDeliveryReply: (id, reply) => this.#hub.deliveryReply(id, reply),
        onDeliveryFailed: (id, error) => this.#hub.deliveryFailed(id, error),
        onCall: (tool, method, args) =>
          tool === '#host' ? this.#services.serve(method, args) : this.#kernel.toolbox.serve(tool, method, args),
        onLog: (lane, record) => this.#onLog(record, lane),
        onFault: (lane, error) =>
          this.log('ERROR', `A message of lane ${lane.index} was not handled: ${messageOf(error)}`, 'supervisor', {
            stack: error instanceof Error ? error.stack : undefined,
          }),
      },
      onBooted: (lane) => {
        this.#registrar.adopt(lane)
        this.#instances.complete(lane)
      },
      refusalOf: ({ plugins, faults }) => this.#health.refusalOf(plugins, faults),
      onUnresponsive: (lane) => {
        this.#laneStreams.still(lane)
        void this.#dispatcher.rescue(lane)
      },
      onRecovered: (lane, standstill) => deaths.onRecovered(lane, standstill),
      onDeath: (lane, death) => deaths.onDeath(lane, death),
      onLeaving: (lane) => this.#registrar.leaving(lane),
      isBusy: (lane) => this.#registrar.isBusy(lane),
      onLeft: (lane, { requests, unreadDeliveries }) => {
        for (const { exchange } of requests) exchange.fail('HTTP_INTERNAL')
        this.#kernel.toolbox.threadGone(lane.heartbeat.threadId)
        this.#registrar.gone(lane, unreadDeliveries, null)
      },
      onChange: () => {
        this.#dispatcher.setLanes(this.#supervisor.ready)
        this.#tidy()
        this.#snapshotSoon()
        for (const wake of this.#bootWaiters.splice(0)) wake()
      },
    })
    this.#host = new PrimaryToolHost({
      bus: this.#bus,
      local: this.#local,
      routing: this.#routing,
      kernel: () => this.#kernel,
      log: (level, message, identity, fields) => this.log(level, message, identity, fields),
      dump: () => this.#health.dump(),
      lanes: () => this.#supervisor.info(),
      readiness: () => this.readiness(),
      setTool: (tool, status, message) => this.#health.setTool(tool, status, message),
      addJob: (job) => this.#jobs.addLocal(job),
      jobs: () => this.#jobs.list(),
    })
    this.#services = new LaneCallHandler(this.#bus, this.#host)
    this.#reloads = new Reloads({
      isServing: () => this.#isReady && this.#listener.state === 'open',
      replace: () => {
        this.#log.forgetFaults()
        return this.#supervisor.reload()
      },
      onNewCode: () => {
        this.#isTidyDue = true
        this.#tidy()
        this.#circuitBreaker.reset()
      },
      onEnd: (info) => {
        this.#health.reload = info
        this.#snapshotSoon()
      },
      log: (level, message) => this.log(level, message, 'supervisor'),
    })
    this.#listener = new Listener({
      settings,
      routes: this.#routing.table,
      lanes: this.#dispatcher,
      isCrowded: () => this.#hub.isCrowded,
      local: this.#local,
      onFramingFault: (fault, ip) => this.log('WARNING', `A connection was closed: ${fault}`, 'http', { ip }),
      onFault: (error) => this.log('ERROR', `A request was not taken in: ${messageOf(error)}`, 'http'),
    })
  }

  /** What its own tools stand on. */
  get host(): PrimaryToolHost {
    return this.#host
  }

  get toolbox(): Toolbox {
    return this.#kernel.toolbox
  }

  /** Deliveries of events that are accepted and not finished. */
  get pendingDeliveries(): number {
    return this.#hub.pending
  }

  // ── start ─────────────────────────────────────────────────────────────────

  /**
   * Boots everything and serves.
   * @returns the port
   * @throws what makes a start impossible: two tools of one name, a folder that is not there, a port that is taken, no lane that boots
   */
  async start(options: { exclusivePort: boolean }): Promise<number> {
    await this.#openTracing()
    if (this.#isDeveloped) {
      this.#listener.tracing = new RequestLog(this.#listener.tracing, (line) => this.#log.request(line))
    }
    await this.#openStreams()
    await this.#installTools()
    this.#supervisor.start()
    await this.#toolBooter.bootAll()
    await this.#kernel.plugins.boot(this.#settings.domainsDir, 'primary')
    this.#host.isBooted = true
    this.#dropDead()
    this.#health.setPlugins(this, this.#kernel.plugins.health)
    this.#registrar.open()
    await this.#lanesBooted()
    await this.#streams?.opened()
    const port = await this.#listener.listen(options.exclusivePort)
    await this.#kernel.plugins.ready()
    this.#registrar.ready()
    this.#jobs.start()
    this.#isReady = true
    return port
  }

  /** What a plugin of the primary registered before it failed is not served. */
  #dropDead(): void {
    for (const [plugin, { status }] of Object.entries(this.#kernel.plugins.health)) {
      if (status === 'OK') continue
      this.#routing.drop(plugin)
      this.#bus.drop(plugin)
      this.#jobs.dropLocal(plugin)
    }
  }

  /** Loaded on demand: while tracing is off not one module of the SDK is. Its troubles never stop a start. */
  async #openTracing(): Promise<void> {
    if (!this.#settings.otelEnabled) return
    try {
      const { ProcessTracing } = await import('../../tracing/primary/process-tracing.ts')
      const tracing = new ProcessTracing(this.#settings, (level, message) => this.log(level, message, 'telemetry'))
      this.#tracing = tracing
      this.#kernel.meter.setTracing(tracing.own.tools)
      this.#listener.tracing = tracing.requests
      this.#local.server.tracing = tracing.own
      this.#bus.tracing = tracing.own
      this.#hub.trace.tracing = tracing.own.deliveries
      this.#jobs.tracing = tracing.own
    } catch (error) {
      this.log('WARNING', `No spans are made: ${messageOf(error)}`, 'telemetry')
    }
  }

  /** Loaded on demand: the in-process bus has no use for a client of the store. @throws REPLICA_ID_TAKEN */
  async #openStreams(): Promise<void> {
    if (this.#settings.eventBusDriver !== 'keyvalue_streams') return
    const { StreamCoordinator } = await import('../streams/coordinator.ts')
    const coordinator = new StreamCoordinator({
      settings: this.#settings,
      hub: this.#hub,
      ownInstance: (subscriberIndex) => this.#bus.instanceOf(subscriberIndex),
      serve: (id, frame, sink) => this.#bus.serve(id, frame, sink),
      onReplicaLost: (message) => this.#onFatal(message),
      tracing: this.#tracing?.own.deliveries ?? null,
      log: (level, message, fields) => this.log(level, message, 'event_bus', fields),
    })
    this.#streams = coordinator
    this.#driver = coordinator.driver
    this.#bus.streams = coordinator
    this.#laneStreams.coordinator = coordinator
    await coordinator.start()
  }

  /** Boots one tool alone, without lanes, plugins or listener. @throws when it is not installed or does not boot */
  async bootOnly(tool: string): Promise<void> {
    await this.#installTools()
    if (this.#kernel.toolbox.get(tool) === undefined) {
      throw new HeddleError(
        'TOOL_MISSING',
        `Missing tool: ${tool}. Installed: ${this.#kernel.toolbox.names.join(', ')}`,
      )
    }
    let fault: unknown
    await this.#kernel.toolbox.boot((_, error) => {
      fault = error
    }, tool)
    await this.#kernel.stop()
    if (fault !== undefined) throw fault
  }

  async #installTools(): Promise<void> {
    await this.#kernel.toolbox.install(this.#settings.toolsDir, this.#kernel.runtimeFactory(this.#host))
  }

  /** Waits until every lane is up, or has failed once. */
  async #lanesBooted(): Promise<void> {
    while (!this.#supervisor.isBootOver) await new Promise<void>((resolve) => this.#bootWaiters.push(resolve))
    if (this.#supervisor.ready.length === 0) throw new HeddleError('LANE_BOOT', 'No lane came up; the log says why')
  }

  // ── reload ────────────────────────────────────────────────────────────────

  /**
   * Replaces the lanes by new ones with the code now on disk; the old ones stay when it does not boot.
   * @returns why the old code goes on, or null
   */
  reload(): Promise<string | null> {
    return this.#reloads.next()
  }

  /** What no lane has any more, after a reload or a death, leaves when all are up: a lane that is down has not said what it has. */
  #tidy(): void {
    if (this.#supervisor.ready.length < this.#settings.lanes) return
    this.#health.allReported()
    if (!this.#isTidyDue) return this.#instances.dropVacant()
    this.#isTidyDue = false
    this.#registrar.tidy(this.#supervisor.ready)
  }

  // ── log and health ────────────────────────────────────────────────────────

  log(level: LogLevel, message: string, identity: string, fields?: Record<string, unknown>): void {
    const record: LogRecord = { level, message, timestampMs: Date.now(), identity }
    if (fields !== undefined) record.fields = fields
    this.#onLog(record)
  }

  #onLog(record: LogRecord, origin: Lane | null = null): void {
    const { level, message, timestampMs, identity, fields } = record
    this.#log.write(level, message, timestampMs, identity, fields)
    this.#kernel.tellLogSinks(level, message, timestampMs, identity)
    this.#feeds.log(record, origin)
  }

  readiness(): Readiness {
    return readinessOf({
      lanes: this.#supervisor.countByState(),
      lanesWanted: this.#settings.lanes,
      isDraining: this.#listener.state === 'draining',
      isReady: this.#isReady,
      toolReasons: this.#toolBooter.reasons,
      busFault: this.#streams?.fault ?? null,
      wasBusOpen: this.#streams?.wasOpen ?? false,
      isCrowded: this.#hub.isCrowded,
    })
  }

  #snapshot(): ToLane {
    const subscribers: Record<string, string[]> = {}
    for (const [event, entry] of Object.entries(this.#hub.topology())) subscribers[event] = entry.subscribers
    return { type: 'snapshot', dump: this.#health.dump(), subscribers }
  }

  #snapshotSoon(): void {
    this.#snapshotTimer ??= setTimeout(() => {
      this.#snapshotTimer = undefined
      const snapshot = this.#snapshot()
      for (const lane of this.#supervisor.all) if (lane.state === 'ready') lane.post(snapshot)
    }, SNAPSHOT_MS).unref()
  }

  // ── stop ──────────────────────────────────────────────────────────────────

  /** Drains: no new work, everything accepted is finished, then all threads end. Bounded by SHUTDOWN_TIMEOUT_MS. */
  async stop(): Promise<void> {
    const streams = (): StreamCoordinator | null => this.#streams
    const tracing = (): ProcessTracing | null => this.#tracing
    await shutDown({
      shutdownTimeoutMs: this.#settings.shutdownTimeoutMs,
      toolBooter: this.#toolBooter,
      listener: this.#listener,
      local: this.#local,
      dispatcher: this.#dispatcher,
      supervisor: this.#supervisor,
      jobs: this.#jobs,
      kernel: this.#kernel,
      hub: this.#hub,
      get streams() {
        return streams()
      },
      get tracing() {
        return tracing()
      },
      onLost: (message) => this.log('WARNING', message, 'event_bus'),
    })
    this.#log.flush()
  }
}
