// Builds the parts of the primary, each before those that ask for it.

import type { Readiness } from '../contracts/registry.ts'
import { processNumber } from '../core/config/checks.ts'
import type { Settings } from '../core/config/schema.ts'
import { messageOf, stackOf } from '../core/errors/description.ts'
import type { ProcessHistory } from '../history/process-history.ts'
import { storeDatabaseOf } from '../runtime/event-store/database.ts'
import type { LaneServices } from '../runtime/host/services.ts'
import { watchUnawaited } from '../runtime/kernel/failed-calls.ts'
import { createSharedMemories, ThreadKernel } from '../runtime/kernel/thread.ts'
import type { ProcessTracing } from '../tracing/process-tracing.ts'
import { Dispatcher } from './dispatch/dispatcher.ts'
import { HeldPlaces } from './dispatch/held-places.ts'
import type { Lane } from './dispatch/lane.ts'
import { LocalWorker } from './dispatch/local-worker.ts'
import { assembleEvents, type EventParts } from './event-parts.ts'
import { FlightMirror } from './flight/flight-mirror.ts'
import { Health, Snapshots } from './health/health.ts'
import { Descriptors, PoolProbe } from './health/held-resources.ts'
import { ProcessMetrics } from './health/process-metrics.ts'
import { Listener } from './http/listener.ts'
import { Routing, routeInfo } from './http/routes.ts'
import { Jobs } from './jobs/jobs.ts'
import type { ProcessLog } from './logging/process-log.ts'
import { Isolation } from './supervision/isolation.ts'
import { LaneRegistrar } from './supervision/lane-registrar.ts'
import { LaneSet } from './supervision/lane-set.ts'
import { ProcessDeaths } from './supervision/process-deaths.ts'
import { Supervisor } from './supervision/supervisor.ts'
import { ToolBooter } from './tools/tool-booter.ts'
import { keptRequests, PrimaryHost } from './tools/tool-host.ts'

export interface RuntimeOptions {
  settings: Settings
  processLog: ProcessLog<Lane>
  /** Called with the reason when this process must end. */
  onFatal: (message: string) => void
  /** Somebody changes the code while the process runs, and waits for each change. */
  isDevelopment?: boolean
  /** The guardian's folder for what is in flight; null without a guardian. */
  flightDir?: string | null
}

/** Opened by `openObservers`. */
interface Recorders {
  /** Null while tracing is off. */
  tracing: ProcessTracing | null
  /** Null where no history is kept. */
  history: ProcessHistory | null
  /** Where the pages of requests are; null where there are none. */
  pages: string | null
}

export type Parts = ReturnType<typeof buildParts>

/** @param readiness of the whole */
export function buildParts(options: RuntimeOptions, readiness: () => Readiness) {
  const { settings, processLog, isDevelopment = false, flightDir = null } = options
  const { log } = processLog
  const lanes = new LaneSet(settings.lanes)
  const number = processNumber(settings)
  const processDeaths = flightDir === null ? null : new ProcessDeaths(settings.crashReportsDir, log, number)
  const flightMirror = flightDir === null ? null : new FlightMirror(flightDir)

  // Tools and plugins. The kernel reports to `health`, which asks it for its tools: neither does so before a tool is booted.
  const shared = createSharedMemories()
  const kernel: ThreadKernel = new ThreadKernel({
    thread: { kind: 'primary' },
    settings,
    shared,
    flight: null,
    callPrimary: null,
    onToolStatus: (...change) => health.noteTool(...change),
    writeLog: log,
  })
  const { toolbox } = kernel
  watchUnawaited(log, (plugin) => kernel.plugins.files[plugin])
  const health = new Health(
    toolbox,
    shared.statuses,
    lanes,
    number === null ? null : { number, of: settings.processes, replica: settings.replicaId, pid: process.pid },
  )
  health.release = settings.heddleRelease
  const toolBooter = new ToolBooter(kernel, health)

  // Events.
  const events: EventParts = assembleEvents(kernel, lanes, processDeaths, options.onFatal)
  const { hub, bus } = events
  const snapshots = new Snapshots(health, hub, lanes)
  processLog.onRecord = (record, origin) => {
    kernel.tellLogSinks(record)
    events.recordForwarder.log(record, origin)
  }

  // Requests.
  const routing = new Routing(settings.httpHandlerTimeoutMs)
  const boundHolders = () => new HeldPlaces(settings.httpMaxRequestsPerRoute, settings.httpMaxRequestsPerAddress)
  const localWorker = new LocalWorker(kernel.logFault, flightMirror?.primary, boundHolders())
  const dispatcher = new Dispatcher(
    (error) =>
      log('ERROR', `A request that waited was not handed over: ${messageOf(error)}`, 'http', { stack: stackOf(error) }),
    isDevelopment,
    boundHolders(),
  )
  const gates = { lanes: dispatcher, local: localWorker }
  const listener = new Listener({ settings, log, routes: routing.table, ...gates, hub, health })

  // Plugins with a lane of their own, and those that are disabled.
  const isolation = new Isolation({
    lanes,
    routing,
    dispatcher,
    hub,
    onDisabled: (plugin, disabled) => {
      routing.close(plugin, disabled?.untilMs ?? 0)
      hub.pausePlugin(plugin, disabled !== null)
      health.setDisabled(plugin, disabled?.reason ?? null)
      if (disabled !== null) log('ERROR', `Plugin ${plugin}: ${disabled.reason}`, 'supervisor')
      else log('WARNING', `Plugin ${plugin} is tried again`, 'supervisor')
    },
    log: (level, message) => log(level, message, 'supervisor'),
  })
  processDeaths?.disablePlugins(isolation)

  const jobs = new Jobs({
    enabled: settings.schedulerEnabled,
    lanes: () => lanes.ready,
    isPaused: (plugin) => isolation.isDisabled(plugin),
    database: () => {
      const database = storeDatabaseOf(toolbox.get('db'))
      // Which process has the event store of a file says nothing of the jobs.
      return database?.dialect === 'sqlite' || events.durable.isOpen ? database : null
    },
    replica: settings.replicaId,
    isStored: () => storeDatabaseOf(toolbox.get('db')) !== null,
    log: (level, message, fields) => log(level, message, 'scheduler', fields),
  })

  const recorders: Recorders = { tracing: null, history: null, pages: null }

  // The host of the primary's own plugins, and what the lanes ask it.
  const services: LaneServices = {
    lanes: () => lanes.info(),
    readiness,
    counters: () => metrics.read(),
    routeList: () => routing.table.list().map(routeInfo),
    jobs: (options) => jobs.listWith(options),
    runJob: (key, askedBy) => jobs.runNow(key, askedBy),
    ...keptRequests(() => recorders.history),
    ...bus.services,
  }
  const host = new PrimaryHost(
    { kernel, bus, services, opened: () => events.threadStore.opened() },
    { local: localWorker, routing, jobs, health, requestWatchers: listener.watchers },
  )

  // The lanes.
  const pool = new PoolProbe(settings.poolStallMs, lanes, log)
  const descriptors = new Descriptors(
    listener.connectionLimit,
    lanes,
    log,
    (lane, holder) => void supervisor.endHolder(lane, holder),
  )
  const parts = {
    log,
    isDevelopment,
    processLog,
    processDeaths,
    flightMirror,
    kernel,
    health,
    snapshots,
    toolBooter,
    events,
    routing,
    localWorker,
    dispatcher,
    listener,
    isolation,
    jobs,
    recorders,
    services,
    host,
    lanes,
    pool,
    descriptors,
  }
  const registrar = new LaneRegistrar(parts)
  const supervisor = new Supervisor(registrar, parts)
  const metrics = new ProcessMetrics({ ...parts, supervisor })
  return { ...parts, registrar, supervisor }
}
