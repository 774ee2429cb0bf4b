import type { Settings } from '../config/schema.ts'
import type { LogLevel } from '../contracts/logger.ts'
import type { Readiness } from '../contracts/registry.ts'
import { HeddleError } from '../errors/catalogue.ts'
import { messageOf } from '../errors/wire.ts'
import { Hub, POISON_DEATHS } from '../events/hub.ts'
import { Listener } from '../http/listener.ts'
import { LocalWorker } from '../http/local-worker.ts'
import { Health } from '../kernel/health.ts'
import { ThreadKernel } from '../kernel/thread.ts'
import { Dispatcher } from '../lanes/dispatcher.ts'
import type { Lane } from '../lanes/lane.ts'
import type { LogRecord, SharedMemories, ToLane, ToPrimary } from '../lanes/messages.ts'
import { Supervisor } from '../lanes/supervisor.ts'
import { createMetricsRing } from '../shm/metrics-ring.ts'
import { createNameTable } from '../shm/name-table.ts'
import { createStatusTable, StatusTable } from '../shm/status-table.ts'
import { PrimaryBus } from './bus.ts'
import { Feeds } from './feeds.ts'
import { PrimaryHost } from './host.ts'
import { HostServices } from './host-services.ts'
import { Jobs } from './jobs.ts'
import { LaneSeats } from './lane-seats.ts'
import type { LogWriter } from './log.ts'
import { Routing } from './routing.ts'

/** Changes of health are told to the lanes this much later, together, milliseconds. */
const SNAPSHOT_MS = 50
const DRAIN_LOOK_MS = 10
/** A drain serves what still comes on open connections for so long at most, milliseconds. */
const LINGER_MAX_MS = 3000

/** The primary thread, put together: tools, lanes, hub, plugins, listener; and taken apart again in order. */
export class Runtime {
  readonly #settings: Settings
  readonly #log: LogWriter
  readonly #shared: SharedMemories
  readonly #hub: Hub
  readonly #bus: PrimaryBus
  readonly #seats: LaneSeats
  readonly #feeds: Feeds
  readonly #local: LocalWorker
  readonly #routing: Routing
  readonly #host: PrimaryHost
  readonly #services: HostServices
  readonly #kernel: ThreadKernel
  readonly #health: Health
  readonly #jobs: Jobs
  readonly #dispatcher = new Dispatcher()
  readonly #supervisor: Supervisor
  readonly #listener: Listener
  readonly #bootWaiters: (() => void)[] = []
  /** Lanes that were up before the primary's own plugins: those have the first claim on routes, whoever boots faster. */
  readonly #earlyLanes: Lane[] = []
  /** Tools that did not boot: the process serves what it can, and asks for no traffic. */
  readonly #bootFaults: string[] = []
  #snapshotTimer: NodeJS.Timeout | undefined
  #isReady = false
  /** The lane that is at it, until it says that it is done. */
  #onReadyLane: Lane | 'done' | undefined
  #onReadyDeaths = 0

  constructor(settings: Settings, log: LogWriter) {
    this.#settings = settings
    this.#log = log
    this.#shared = { metrics: createMetricsRing(), names: createNameTable(), statuses: createStatusTable(), tools: {} }
    this.#hub = new Hub({
      maxQueue: settings.eventBusMaxQueue,
      log: (level, message, fields) => this.log(level, message, 'event_bus', fields),
    })
    this.#bus = new PrimaryBus(this.#hub, (thrown) => this.#kernel.sinkFault('event listener', thrown))
    this.#seats = new LaneSeats(this.#hub)
    this.#feeds = new Feeds(this.#hub, (lane) => this.#seats.hostOf(lane))
    this.#routing = new Routing(settings.httpHandlerTimeoutMs)
    this.#local = new LocalWorker((route, requestId, thrown) =>
      this.log('ERROR', `${route.template.text} failed: ${messageOf(thrown)}`, route.owner.name, {
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
    this.#supervisor = new Supervisor({
      settings,
      shared: this.#shared,
      listener: {
        onMessage: (lane, message) => this.#onMessage(lane, message),
        onPublish: (lane, event) => this.#hub.publish(event, this.#seats.hostOf(lane)),
        onDelivered: (id) => this.#hub.delivered(id),
        onDeliveryReply: (id, reply) => this.#hub.deliveryReply(id, reply),
        onDeliveryFailed: (id, error) => this.#hub.deliveryFailed(id, error),
        onCall: (tool, method, args) =>
          tool === '#host' ? this.#services.serve(method, args) : this.#kernel.toolbox.serve(tool, method, args),
        onLog: (lane, record) => this.#onLog(record, lane),
      },
      onBooted: (lane) => this.#onBooted(lane),
      onUnresponsive: (lane) => void this.#dispatcher.rescue(lane),
      onDeath: (lane, reason, message, orphans) => {
        for (const exchange of orphans) exchange.fail(reason === 'stalled' ? 'HTTP_LANE_STALLED' : 'HTTP_INTERNAL')
        const routes = orphans.map(({ label }) => label)
        this.log('ERROR', `Lane ${lane.index} died: ${message}`, 'supervisor', { reason, in_flight: routes })
        this.#forget(lane)
      },
      onChange: () => {
        this.#dispatcher.setLanes(this.#supervisor.ready)
        this.#snapshotSoon()
        for (const wake of this.#bootWaiters.splice(0)) wake()
      },
    })
    this.#jobs = new Jobs(
      settings.schedulerEnabled,
      () => this.#supervisor.ready,
      (level, message, fields) => this.log(level, message, 'scheduler', fields),
    )
    this.#host = new PrimaryHost({
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
    this.#services = new HostServices(this.#bus, this.#host)
    this.#listener = new Listener({
      settings,
      routes: this.#routing.table,
      lanes: this.#dispatcher,
      local: this.#local,
      onFramingFault: (fault, ip) => this.log('WARNING', `A connection was closed: ${fault}`, 'http', { ip }),
      onFault: (error) => this.log('ERROR', `A request was not taken in: ${messageOf(error)}`, 'http'),
    })
  }

  // ── start ─────────────────────────────────────────────────────────────────

  /**
   * Boots everything and serves.
   * @returns the port
   * @throws what makes a start impossible: two tools of one name, a folder that is not there, a port that is taken, no lane that boots
   */
  async start(options: { exclusivePort: boolean }): Promise<number> {
    this.#refuseUnbuilt()
    await this.#installTools()
    this.#supervisor.start()
    await this.#bootTools()
    await this.#kernel.plugins.boot(this.#settings.domainsDir, 'primary')
    this.#host.isBooted = true
    this.#dropDead()
    this.#health.setPlugins(this, this.#kernel.plugins.health)
    for (const lane of this.#earlyLanes.splice(0)) if (lane.state !== 'dead') this.#adopt(lane)
    await this.#lanesBooted()
    const port = await this.#listener.listen(options.exclusivePort)
    await this.#kernel.plugins.ready()
    this.#runOnReady()
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

  /** Settings that name what is not there yet: better no start than one that does something else than was asked. */
  #refuseUnbuilt(): void {
    if (this.#settings.eventBusDriver !== 'in_process') {
      throw new HeddleError(
        'CONFIG_INVALID',
        `EVENT_BUS_DRIVER=${this.#settings.eventBusDriver} is not available in this version; use in_process`,
      )
    }
    if (this.#settings.otelEnabled)
      this.log('WARNING', 'OTEL_ENABLED has no effect in this version: no spans are exported', 'telemetry')
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

  async #bootTools(): Promise<void> {
    await this.#kernel.toolbox.boot((tool, error) => {
      this.#health.setTool(tool, 'DEAD', messageOf(error))
      this.#bootFaults.push(`tool ${tool} did not boot: ${messageOf(error)}`)
      this.log('ERROR', `Tool ${tool} did not boot: ${messageOf(error)}`, tool)
    })
  }

  /** Waits until every lane is up, or has failed once. */
  async #lanesBooted(): Promise<void> {
    const isSettled = (): boolean => this.#supervisor.all.every(({ state }) => state !== 'starting')
    while (!isSettled()) await new Promise<void>((resolve) => this.#bootWaiters.push(resolve))
    if (this.#supervisor.ready.length === 0) throw new HeddleError('LANE_BOOT', 'No lane came up; the log says why')
  }

  #onBooted(lane: Lane): void {
    if (this.#host.isBooted) this.#adopt(lane)
    else this.#earlyLanes.push(lane)
  }

  #adopt(lane: Lane): void {
    const { manifest } = lane
    this.#health.setPlugins(lane, manifest!.plugins)
    const refused = new Set<string>()
    const routes = this.#routing.adopt(lane, (plugin, error) => {
      refused.add(plugin)
      const tools = manifest!.plugins[plugin]?.tools ?? []
      this.#health.setPlugins(lane, { [plugin]: { status: 'DEAD', error, tools } })
      this.log('ERROR', `Plugin ${plugin} failed in boot: ${error}`, 'kernel')
    })
    lane.post({ type: 'assign', routes })
    for (const subscription of manifest!.subscriptions) {
      if (!refused.has(subscription.plugin)) this.#seats.add(lane, subscription.local, subscription)
    }
    // Before its first request: its plugins never see an empty snapshot.
    lane.post(this.#snapshot())
    this.#jobs.addOf(lane, (plugin) => refused.has(plugin))
    if (this.#isReady) this.#runOnReady()
  }

  /** `onReady` of the lanes' plugins runs in one lane for the whole process, once. */
  #runOnReady(): void {
    if (this.#onReadyLane !== undefined) return
    const lane = this.#supervisor.all.find(({ manifest, state }) => manifest !== null && state !== 'dead')
    if (lane === undefined) return
    this.#onReadyLane = lane
    lane.post({ type: 'ready' })
  }

  /** The lane that was at it has died: another one runs it, unless it is what kills them. */
  #repeatOnReady(lane: Lane): void {
    if (lane !== this.#onReadyLane) return
    if (++this.#onReadyDeaths >= POISON_DEATHS) {
      return this.log(
        'ERROR',
        `${this.#onReadyDeaths} lanes died while they ran onReady: it is not run again`,
        'kernel',
      )
    }
    this.#onReadyLane = undefined
    this.#runOnReady()
  }

  // ── what lanes say ────────────────────────────────────────────────────────

  #onMessage(lane: Lane, message: ToPrimary): void {
    switch (message.type) {
      case 'subscribe':
        this.#seats.add(lane, message.local, message.subscription)
        this.#snapshotSoon()
        return
      case 'unsubscribe':
        this.#seats.remove(lane, message.local)
        this.#snapshotSoon()
        return
      case 'listen':
        return this.#feeds.listen(lane, message.feed, message.on)
      case 'tool-status':
        // A tool call set the word itself; `registry.updateToolStatus` did not.
        return this.#health.noteTool(message.tool, message.status, message.message)
      case 'set-tool':
        return this.#health.setTool(message.tool, message.status, message.message)
      case 'ready-done':
        this.#onReadyLane = 'done'
        return
      case 'job-done':
        return this.#jobs.done(message.run, message.error)
    }
  }

  #forget(lane: Lane): void {
    this.#health.threadGone(lane)
    this.#feeds.gone(lane)
    this.#jobs.laneGone(lane)
    this.#seats.forget(lane)
    this.#repeatOnReady(lane)
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
    const lanes = this.#supervisor.countByState()
    const reasons: string[] = []
    if (this.#listener.state === 'draining') reasons.push('draining')
    else if (!this.#isReady) reasons.push('starting')
    if (lanes.ready === 0) reasons.push('no lane is up')
    reasons.push(...this.#bootFaults)
    const ready = reasons.length === 0
    if (ready && lanes.ready! < this.#settings.lanes)
      reasons.push(`${this.#settings.lanes - lanes.ready!} of ${this.#settings.lanes} lanes are missing`)
    return { ready, reasons, lanes }
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
    const deadlineMs = Date.now() + this.#settings.shutdownTimeoutMs
    await this.#listener.drain(Math.min(LINGER_MAX_MS, this.#settings.shutdownTimeoutMs * 0.3))
    this.#local.server.closeStreams()
    const requestsInFlight = (): number =>
      this.#supervisor.all.reduce((sum, lane) => sum + lane.requestsInFlight - lane.streamsOpen, 0) +
      this.#local.inFlight
    // Streams of the lanes end with the lanes; all else is waited for.
    await until(
      () => requestsInFlight() === 0,
      Math.min(deadlineMs, Date.now() + this.#settings.shutdownTimeoutMs * 0.6),
    )
    await Promise.race([this.#jobs.stop(), until(() => false, deadlineMs)])
    await until(() => this.#hub.pending === 0, deadlineMs)
    if (this.#hub.pending > 0) {
      this.log(
        'WARNING',
        `${this.#hub.pending} event deliveries were not finished and are lost with this process`,
        'event_bus',
      )
    }
    await this.#supervisor.stop(Math.max(500, deadlineMs - Date.now()))
    await this.#kernel.stop()
    this.#hub.close()
    this.#listener.close()
    this.#log.flush()
  }
}

async function until(condition: () => boolean, deadlineMs: number): Promise<void> {
  while (!condition() && Date.now() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, DRAIN_LOOK_MS))
}
