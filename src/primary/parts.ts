// Builds the parts of the primary, each before those that ask for it.

import type { Readiness } from '../contracts/registry.ts'
import { processNumber } from '../core/config/checks.ts'
import type { Settings } from '../core/config/schema.ts'
import type { FixFacts } from '../runtime/advice/tool-names.ts'
import { useCookieSecrets } from '../runtime/endpoint/cookies.ts'
import { logDatabaseOf } from '../runtime/event-log/log-database.ts'
import type { LaneServices } from '../runtime/host/services.ts'
import { poolUses } from '../runtime/kernel/pool-requests.ts'
import { threadEffects } from '../runtime/thread-effects.ts'
import { CLAIM_MEMORY_BYTES } from '../transport/memory/claim-memory.ts'
import { LOG_MEMORY_BYTES } from '../transport/memory/log-memory.ts'
import { createMetricsRing } from '../transport/memory/metrics-ring.ts'
import { createNameTable } from '../transport/memory/name-table.ts'
import { createStatusTable } from '../transport/memory/words.ts'
import type { Lane } from './dispatch/lane.ts'
import { assembleEvents, type EventParts } from './event-parts.ts'
import { Descriptors } from './health/descriptors.ts'
import { PoolProbe } from './health/pool-probe.ts'
import { processCounters } from './health/process-counters.ts'
import { routeInfo } from './http/routes.ts'
import { assembleHttp } from './http-parts.ts'
import { Jobs } from './jobs/jobs.ts'
import type { LogWriter } from './logging/log-writer.ts'
import { ProcessLog } from './logging/process-log.ts'
import { Observers } from './observers.ts'
import { FlightMirror } from './supervision/crash-report.ts'
import { Guilt } from './supervision/guilt.ts'
import { LaneRegistrar } from './supervision/lane-registrar.ts'
import { LaneSet } from './supervision/lane-set.ts'
import { ProcessDeaths } from './supervision/process-deaths.ts'
import { RequestPlacement } from './supervision/request-placement.ts'
import { Supervisor } from './supervision/supervisor.ts'
import { assembleTools, type ToolParts } from './tool-parts.ts'
import { keptRequests, PrimaryToolHost } from './tools/tool-host.ts'

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

export type Parts = ReturnType<typeof buildParts>

/** @param readiness of the whole */
export function buildParts(options: RuntimeOptions, readiness: () => Readiness) {
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
  const processLog = new ProcessLog<Lane>(logWriter, settings)
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
    onCircuit: (plugin, open) => {
      http.routing.close(plugin, open?.untilMs ?? 0)
      events.hub.pausePlugin(plugin, open !== null)
      tools.health.setCircuit(plugin, open?.reason ?? null)
      if (open !== null) log('ERROR', `Plugin ${plugin}: ${open.reason}`, 'supervisor')
      else log('WARNING', `Plugin ${plugin} is tried again`, 'supervisor')
    },
    onChange: () => placement.place(),
    log: (level, message) => log(level, message, 'supervisor'),
  })
  const placement = new RequestPlacement(lanes, guilt, { ...http, ...events })
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
  const observers = new Observers({
    settings,
    log,
    logWriter,
    processLog,
    tools,
    http,
    events,
    jobs,
    isGuarded: flightDir !== null,
  })
  const services: LaneServices = {
    lanes: () => lanes.info(),
    readiness,
    counters: () => processCounters(logWriter.output, http, events.hub),
    routeList: () => http.routing.table.list().map(routeInfo),
    jobs: () => jobs.list(),
    ...keptRequests(() => observers.history),
    ...bus.services,
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
    history: () => observers.history,
    flightMirror,
  })
  const supervisor = new Supervisor(lanes, registrar, {
    settings,
    shared,
    isDevelopment,
    tracing: () => observers.tracing,
    history: () => observers.history,
    barred: processDeaths?.barred() ?? {},
    pastDeaths: (index) => processDeaths?.ofLane(index) ?? [],
    flightMirror,
  })
  return {
    log,
    processLog,
    processDeaths,
    flightMirror,
    events,
    tools,
    http,
    jobs,
    guilt,
    pool,
    descriptors,
    observers,
    host,
    lanes,
    registrar,
    supervisor,
  }
}
