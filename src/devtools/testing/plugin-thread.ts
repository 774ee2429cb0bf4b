// The thread of one plugin: a runtime without lanes.
import type { Payload } from '../../contracts/events.ts'
import type { LogLevel } from '../../contracts/logger.ts'
import type { JobDefinition, StartedRun } from '../../contracts/scheduler.ts'
import type { ProcessServices, Tools } from '../../contracts/tool.ts'
import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../core/schedule/clock.ts'
import { withTimeout } from '../../core/schedule/waiting.ts'
import { LocalWorker } from '../../primary/dispatch/local-worker.ts'
import { EventIndex } from '../../primary/event-store/event-index.ts'
import { FollowedEvents } from '../../primary/event-store/followed.ts'
import { type EventDriver, InProcessDriver } from '../../primary/events/event-driver.ts'
import { Hub } from '../../primary/events/hub.ts'
import { PrimaryBus } from '../../primary/events/primary-bus.ts'
import { Health } from '../../primary/health/health.ts'
import { Listener } from '../../primary/http/listener.ts'
import { Routing, routeInfo } from '../../primary/http/routes.ts'
import { newRunId, unknownJob } from '../../primary/jobs/job-clock.ts'
import { Jobs } from '../../primary/jobs/jobs.ts'
import type { Log } from '../../primary/logging/process-log.ts'
import { Queues } from '../../primary/queues/queues.ts'
import { keptRequests, PrimaryHost } from '../../primary/tools/tool-host.ts'
import { type StoreDatabase, storeDatabaseOf } from '../../runtime/event-store/database.ts'
import { pruneReports } from '../../runtime/event-store/report-rows.ts'
import { prepareTables } from '../../runtime/event-store/tables.ts'
import { runJob } from '../../runtime/host/host.ts'
import { RunningJob } from '../../runtime/host/running-job.ts'
import type { ToolFolder } from '../../runtime/kernel/discover.ts'
import type { PluginClass } from '../../runtime/kernel/plugin.ts'
import { createSharedMemories, ThreadKernel } from '../../runtime/kernel/thread.ts'
import { newRecord } from '../../runtime/log-records.ts'
import type { LogEntry, TestUser } from './app.ts'
import { end, type Timed } from './clock.ts'
import { type PublishedEvent, SeenEvents } from './seen-events.ts'

/** Jobs that run when the plugin is stopped may take so long to end, milliseconds. */
const JOBS_END_MS = 1000

/**
 * One plugin and all tools in the thread of the test: the parts of the primary, without lanes. The real listener serves the plugin's
 * routes, the real hub its events.
 */
export class PluginThread implements Timed {
  readonly hub: Hub
  readonly logs: LogEntry[] = []
  readonly events = new SeenEvents<PublishedEvent>()
  /** Who calls; undefined: whom `http.identify` names. */
  user: TestUser | null | undefined
  /** The tools of the test, whose calls are counted like a plugin's. */
  readonly tools: Tools
  readonly #kernel: ThreadKernel
  readonly #jobs: Jobs
  readonly #timeMoved: () => Promise<void>
  readonly #host: PrimaryHost
  readonly #listener: Listener

  constructor(settings: Settings) {
    const log: Log = (...record) => this.#log(...record)
    const shared = createSharedMemories()
    const kernel = new ThreadKernel({
      thread: { kind: 'primary' },
      settings,
      shared,
      flight: null,
      callPrimary: null,
      onToolStatus: (...change) => health.noteTool(...change),
      writeLog: log,
    })
    this.#kernel = kernel
    const { toolbox } = kernel
    const health = new Health(toolbox, shared.statuses, { countByState: () => ({}) })
    this.hub = new Hub({
      clock: SYSTEM_CLOCK,
      chance: SYSTEM_CHANCE,
      maxQueue: settings.eventBusMaxQueue,
      onQuarantine: () => {},
      onQuarantineUsed: () => {},
      log: (level, message, fields) => log(level, message, 'event_bus', fields),
    })
    const driver = this.#observedDriver()
    const bus = new PrimaryBus(kernel, this.hub, () => driver, {
      cancel: (what) => this.hub.cancelMeant(what),
      followed: (id, seen) => followed.followed(id, seen),
      queues: () => queues.queues(),
      deliveries: (page) => queues.deliveries(page),
      setPaused: (...of) => queues.setPaused(...of),
      runNow: (...of) => queues.runNow(...of),
    })
    const queues = new Queues({
      hub: this.hub,
      clock: SYSTEM_CLOCK,
      replica: settings.replicaId,
      durable: null,
      backlog: async () => [],
    })
    const database = (): StoreDatabase | null => storeDatabaseOf(toolbox.get('db'))
    const followed = new FollowedEvents({
      hub: this.hub,
      clock: SYSTEM_CLOCK,
      database: () => (tables === undefined ? null : database()),
      isOpening: () => false,
      index: new EventIndex(() => database()!, SYSTEM_CLOCK, SYSTEM_CHANCE),
      cancels: () => null,
    })
    this.#jobs = new Jobs({
      enabled: true,
      isByTest: true,
      lanes: () => [],
      isPaused: () => false,
      database: () => null,
      isStored: () => false,
      replica: settings.replicaId,
      log: (level, message, fields) => log(level, message, 'scheduler', fields),
    })
    const routing = new Routing(settings.httpHandlerTimeoutMs)
    const local = new LocalWorker(kernel.logFault)
    const services: ProcessServices = {
      lanes: () => [],
      readiness: () => ({ ready: true, reasons: [], lanes: {}, starved: {} }),
      counters: () => [],
      routeList: () => routing.table.list().map(routeInfo),
      jobs: (options) => this.#jobs.listWith(options),
      runJob: (key, askedBy) => this.#runNow(key, askedBy),
      // A test looks at the plugin itself.
      ...keptRequests(() => null),
    }
    // There is no event store here: the runtime's tables are made when they are first needed.
    let tables: Promise<void> | undefined
    const opened = (): Promise<void> => {
      tables ??= prepareTables(storeDatabaseOf(toolbox.get('db'))!, true)
      return tables
    }
    this.#host = new PrimaryHost(
      { kernel, bus, services, opened },
      { local, routing, jobs: this.#jobs, health, requestWatchers: [], hasNoLanes: true },
    )
    this.#timeMoved = async () => {
      followed.forgetEnded()
      if (tables === undefined) return
      await tables
      await pruneReports(database()!, database()!.dialect)
    }
    bus.events.transactions = this.#host.transactions
    bus.reportThrough(opened, (id) => followed.touched(id))
    this.#listener = new Listener({
      settings,
      log,
      routes: routing.table,
      lanes: { send: () => false },
      local,
      hub: this.hub,
      health,
    })
    this.tools = toolbox.injection({ name: 'test', instance: undefined }, new Set()) as Tools
  }

  /** The registered jobs. */
  get jobs(): readonly JobDefinition[] {
    return this.#host.jobList
  }

  isBusy(isWithRunning: boolean): boolean {
    return this.hub.isBusy(isWithRunning) || this.#jobs.isBusy(isWithRunning)
  }

  look(): void {
    this.hub.subscribersChanged()
  }

  timeMoved(): Promise<void> {
    return this.#timeMoved()
  }

  /** Event records hold no payload values, so the payloads are kept on their way to the hub. */
  #observedDriver(): EventDriver {
    const driver = new InProcessDriver(this.hub, this.hub.deadLetters)
    const payloads = new Map<string, Payload>()
    this.hub.records.addListener((record) => this.events.add({ ...record, data: payloads.get(record.id)! }))
    this.hub.records.addFailureListener((failure) => this.events.addFailure(failure))
    return {
      deadLetters: driver.deadLetters,
      publish: (event, origin) => {
        payloads.set(event.id, JSON.parse(event.payload))
        return driver.publish(event, origin)
      },
      request: (event, origin, timeoutMs) => {
        payloads.set(event.id, JSON.parse(event.payload))
        return driver.request(event, origin, timeoutMs)
      },
    }
  }

  #log(level: LogLevel, message: string, identity: string, fields: Record<string, unknown> = {}): void {
    this.logs.push({ level, message, identity, fields })
    this.#kernel.tellLogSinks(newRecord(level, message, identity, fields))
  }

  /**
   * Boots the tools, which applies migrations, then the hooks that are for the plugin, then the plugin.
   * @param env a plugin's own variables
   * @param roots folders whose `app.ts` and `domain.ts` are for it
   * @returns the port and the plugin's instance
   * @throws the error of a tool or of the plugin
   */
  async start(
    tools: readonly ToolFolder[],
    env: Readonly<Record<string, string>>,
    domain: string,
    Class: PluginClass,
    roots: readonly string[],
  ): Promise<{ port: number; instance: object }> {
    const factory = this.#kernel.runtimeFactory(this.#host)
    await this.#kernel.toolbox.install(tools, (name) => {
      const runtime = factory(name)
      return { ...runtime, env: (variable) => env[variable] ?? runtime.env(variable) }
    })
    const faults: string[] = []
    await this.#kernel.toolbox.boot((tool, error) => faults.push(`  ${tool}: ${messageOf(error)}`))
    if (faults.length > 0) throw new HeddleError('TOOL_UNAVAILABLE', `Tools did not boot:\n${faults.join('\n')}`)
    this.#host.server.hooks.userInstead = () => this.user
    const instance = await this.#kernel.plugins.add(domain, Class, roots)
    this.#host.settle()
    const port = await this.#listener.listen(true)
    await this.#kernel.plugins.ready()
    this.#jobs.start()
    return { port, instance }
  }

  /** Jobs never run by schedule here: who asks for a run gets it. */
  async #runNow(key: string, askedBy: string): Promise<StartedRun> {
    const job = this.jobs.find(({ owner, name }) => `${owner.name}/${name}` === key)
    if (job === undefined) throw unknownJob(key)
    const id = newRunId()
    const run = new RunningJob(job.name, { id, askedBy, due: new Date(), attempt: 1, fence: 0 })
    void runJob(job, run, null, null).catch((error) =>
      this.#log('ERROR', `Job ${job.name} of ${job.owner.name} failed: ${messageOf(error)}`, 'scheduler'),
    )
    return { id, replica: this.#kernel.settings.replicaId }
  }

  async stop(): Promise<void> {
    this.#listener.close()
    try {
      this.#jobs.lose('stopped')
      await withTimeout(this.#jobs.stop(), JOBS_END_MS, undefined)
      await this.#kernel.stop()
      this.hub.close()
    } finally {
      this.events.end('the plugin was stopped')
      end(this)
    }
  }
}
