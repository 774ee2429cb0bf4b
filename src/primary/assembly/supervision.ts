// Builds the supervision of the lanes.

import type { Origin } from '../../core/causality/context.ts'
import type { Settings } from '../../core/config/schema.ts'
import { messageOf, stackOf } from '../../core/errors/description.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { ProcessHistory } from '../../history/process-history.ts'
import type { ProcessTracing } from '../../tracing/process-tracing.ts'
import { ClaimMemory } from '../../transport/memory/claim-memory.ts'
import { NameTable } from '../../transport/memory/name-table.ts'
import type { SharedMemories } from '../../transport/messages.ts'
import type { Lane, LaneListener } from '../dispatch/lane.ts'
import { RequestPlacement } from '../dispatch/request-placement.ts'
import type { PlacedRequest } from '../dispatch/request-slots.ts'
import type { Descriptors } from '../health/descriptors.ts'
import type { PoolProbe } from '../health/pool-probe.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Log, ProcessLog } from '../logging/process-log.ts'
import { LaneDeaths } from '../supervision/black-box.ts'
import { CircuitBreaker, Confinement } from '../supervision/circuit-breaker.ts'
import type { FlightMirror } from '../supervision/crash-report.ts'
import { type Handlers, handlersOf, Judge, lastBegunIn, Sightings, Suspicion } from '../supervision/guilt.ts'
import { LaneRegistrar } from '../supervision/lane-registrar.ts'
import { OnReadyRunner } from '../supervision/on-ready-runner.ts'
import type { ProcessDeaths } from '../supervision/process-deaths.ts'
import { Supervisor, type SupervisorLink } from '../supervision/supervisor.ts'
import type { LaneCallHandler } from '../tools/lane-call-handler.ts'
import type { EventParts } from './events.ts'
import type { HttpParts } from './http.ts'
import type { ToolParts } from './tools.ts'

interface SuspicionParts {
  readonly sightings: Sightings
  readonly suspicion: Suspicion
  readonly confinement: Confinement
  handlersOf(lane: Lane): Handlers
  /** The handler that a lane has begun last and not ended. */
  lastBegunIn(lane: Lane): Origin | null
  /** Gives the dispatcher the lanes that take requests, each for its plugins. */
  placeRequests(): void
}

interface SuspicionOptions {
  settings: Settings
  http: HttpParts
  events: EventParts
  link: SupervisorLink
}

/** What is known of the plugins' guilt, and where their requests go because of it. */
export function assembleSuspicion({ settings, http, events, link }: SuspicionOptions): SuspicionParts {
  const { routing, dispatcher } = http
  const { hub, laneSubscribers } = events
  const ofLane = (lane: Lane): Handlers => handlersOf(lane, routing, Date.now())
  const sightings = new Sightings(ofLane)
  const confinement = new Confinement({
    onWanted: (isWanted) => link.supervisor.wantProbation(isWanted),
    // A lane reads streams by itself, and ahead: no lane reads for it, and other processes do.
    onStalling: (plugin, isStalling) => events.streams?.pausePlugin(plugin, isStalling, 'stalling'),
    onChange: placeRequests,
  })
  const placement = new RequestPlacement({
    routes: routing.table,
    lanesWanted: settings.lanes,
    isConfined: (plugin) => confinement.isConfined(plugin),
    isStalling: (plugin) => confinement.isStalling(plugin),
    isKnown: (plugin) => sightings.isKnown(plugin),
    isCrisis: () => confinement.isCrisis(steadyMs()),
  })
  function placeRequests(): void {
    const { serving, hasProbationBegun } = link.supervisor.lanes
    placement.place(serving, hasProbationBegun)
    dispatcher.setLanes(serving)
    for (const lane of serving) laneSubscribers.holdBack(lane, (plugin) => placement.isKeptFrom(lane, plugin))
    hub.subscribersChanged()
  }
  sightings.start(() => link.supervisor.lanes.ready, placeRequests)
  return {
    sightings,
    suspicion: new Suspicion(sightings),
    confinement,
    handlersOf: ofLane,
    lastBegunIn: (lane) => lastBegunIn(lane, routing),
    placeRequests,
  }
}

export interface SupervisionParts {
  readonly supervisor: Supervisor
  readonly registrar: LaneRegistrar
  readonly judge: Judge
  /** Tells everybody what the lanes that are up host now. */
  lanesChanged(): void
}

interface SupervisionOptions {
  settings: Settings
  shared: SharedMemories
  /** Somebody changes the code while the process runs. */
  isDevelopment: boolean
  processLog: ProcessLog
  link: SupervisorLink
  events: EventParts
  tools: ToolParts
  http: HttpParts
  jobs: Jobs
  circuitBreaker: CircuitBreaker
  suspicion: SuspicionParts
  laneCalls: LaneCallHandler
  pool: PoolProbe
  descriptors: Descriptors
  /** Null while tracing is off. */
  tracing: () => ProcessTracing | null
  /** Null where no history is kept. */
  history: () => ProcessHistory | null
  /** Both null without a guardian. */
  flightMirror: FlightMirror | null
  processDeaths: ProcessDeaths | null
}

/** The lanes, their supervisor, and what the primary does when one of them boots, reports, leaves or dies. */
export function assembleSupervision(options: SupervisionOptions): SupervisionParts {
  const { settings, shared, isDevelopment, processLog, link, events, tools, http, jobs } = options
  const { log } = processLog
  const { kernel, health, snapshots } = tools
  const registrar = new LaneRegistrar({
    lanesWanted: settings.lanes,
    routing: http.routing,
    laneSubscribers: events.laneSubscribers,
    laneStreams: events.laneStreams,
    recordForwarder: events.recordForwarder,
    jobs,
    health,
    onReadyRunner: new OnReadyRunner(
      () => link.supervisor.lanes.regular,
      (message) => log('ERROR', message, 'kernel'),
    ),
    snapshots,
    log: (message) => log('ERROR', message, 'kernel'),
  })
  const judge = new Judge({
    ...options.suspicion,
    circuitBreaker: options.circuitBreaker,
    log: (level, message) => log(level, message, 'supervisor'),
  })
  const claims = new ClaimMemory(shared.claims)
  const threadGone = (threadId: number): void => {
    kernel.toolbox.threadGone(threadId)
    claims.threadGone(threadId)
  }
  const callNames = new NameTable(shared.names)
  const deaths = new LaneDeaths({
    domainsDir: settings.domainsDir,
    routing: http.routing,
    registrar,
    judge,
    callName: (number) => callNames.nameOf(number),
    publish: (event) => events.driver.publish(event, null),
    record: (box, keys) => options.history()?.died(box, keys),
    threadGone,
    log,
  })
  const supervisor = new Supervisor({
    settings,
    shared,
    isDevelopment,
    tracing: options.tracing,
    history: options.history,
    barred: options.processDeaths?.barred() ?? {},
    pastDeaths: (index) => options.processDeaths?.ofLane(index) ?? [],
    flightMirror: options.flightMirror,
    listener: laneListener(registrar, options),
    onBooted: (lane) => {
      registrar.register(lane)
      events.laneSubscribers.complete(lane)
    },
    refusalOf: ({ plugins, faults }) => health.refusalOf(plugins, faults),
    onUnresponsive: (lane) => {
      events.laneStreams.still(lane)
      void http.dispatcher.rescue(lane)
    },
    onStalled: (lane, stack) => judge.stalled(lane, stack),
    onRecovered: (lane, standstill) => deaths.onRecovered(lane, standstill),
    onLeftOut: (file, reason) => {
      for (const lane of supervisor.lanes.all) registrar.leftOut(lane, file, reason)
    },
    onWornOut: (lane) => {
      const names = [...options.suspicion.handlersOf(lane).values()].map(
        ({ plugin, handler }) => `${handler} (${plugin})`,
      )
      const text = `Lane ${lane.index} is replaced: handlers that do not settle, though their requests were given up, hold half of LANE_MAX_INFLIGHT`
      log('WARNING', `${text}: ${names.slice(0, UNDONE_NAMED).join(', ')}`, 'supervisor')
    },
    onDeath: (lane, death) => {
      registrar.laneDied(lane)
      return deaths.onDeath(lane, death)
    },
    onGone: (lane, unfinished, box) => {
      events.logLanes.laneGone(lane)
      events.durable.laneGone()
      deaths.onGone(lane, unfinished, box)
    },
    onLeaving: (lane) => registrar.laneLeaving(lane),
    isBusy: (lane) => registrar.isBusy(lane),
    onLeft: (lane, { requests, unreadDeliveries }) => {
      events.logLanes.laneGone(lane)
      logUndone(lane, requests, log)
      for (const { exchange } of requests) exchange.fail('HTTP_INTERNAL')
      threadGone(lane.heartbeat.threadId)
      registrar.laneGone(lane, unreadDeliveries, null)
    },
    onChange: lanesChanged,
  })
  link.connect(supervisor)
  return { supervisor, registrar, judge, lanesChanged }

  function lanesChanged(): void {
    options.suspicion.placeRequests()
    registrar.lanesChanged(supervisor.lanes.ready)
    snapshots.sendSoon()
    options.flightMirror?.nameSoon(() => supervisor.lanes.all, http.routing, kernel.plugins.files)
  }
}

/** Requests that are named when a lane has to end without their answers. */
const UNDONE_NAMED = 10

/** Says which requests a lane had to leave. */
function logUndone({ index }: Lane, requests: readonly PlacedRequest[], log: Log): void {
  const undone = requests.filter(({ isStream }) => !isStream)
  if (undone.length === 0) return
  const names = undone.slice(0, UNDONE_NAMED).map(({ exchange: { label, plugin } }) => `${label} (${plugin})`)
  log(
    'WARNING',
    `Lane ${index} was ended without the answer to ${undone.length} requests: ${names.join(', ')}`,
    'supervisor',
  )
}

/** Where each kind of frame and message of a lane goes. */
function laneListener(registrar: LaneRegistrar, options: SupervisionOptions): LaneListener {
  const { processLog, laneCalls } = options
  const { kernel, snapshots } = options.tools
  const { events } = options
  const { hub, laneSubscribers } = events
  return {
    onMessage: (lane, message) => {
      if (message.type === 'log-written') return events.logLanes.written(message.batch, message.error)
      if (message.type === 'pool-uses') return options.pool.report(`lane ${lane.index}`, message.uses)
      if (message.type === 'open-files') return options.descriptors.report(lane, message.holders)
      registrar.onMessage(lane, message)
      if (message.type === 'subscribe' || message.type === 'unsubscribe') snapshots.sendSoon()
    },
    onPublish: (lane, event) => hub.publish(event, laneSubscribers.threadOf(lane)),
    onStored: (lane, event) => events.durable.take(event, laneSubscribers.threadOf(lane)),
    onRecord: (lane, event, isReceived) => events.streams?.record(event, laneSubscribers.threadOf(lane), isReceived),
    onDelivered: (id) => hub.delivered(id),
    onDeliveryReply: (id, reply) => hub.deliveryReply(id, reply),
    onDeliveryFailed: (id, error) => hub.deliveryFailed(id, error),
    onCall: (tool, method, args) =>
      tool === '#host' ? laneCalls.serve(method, args) : kernel.toolbox.serve(tool, method, args),
    onLog: (lane, record) => processLog.record(record, lane),
    onFault: (lane, error) =>
      processLog.log('ERROR', `A message of lane ${lane.index} was not handled: ${messageOf(error)}`, 'supervisor', {
        stack: stackOf(error),
      }),
  }
}

/** Takes plugins whose handlers bring down lanes out of service for a while. */
export function assembleCircuitBreaker(
  options: Pick<SupervisionOptions, 'processLog' | 'events' | 'tools' | 'http' | 'suspicion'>,
) {
  const { processLog, events, tools, http, suspicion } = options
  return new CircuitBreaker((plugin, open) => {
    http.routing.close(plugin, open?.untilMs ?? 0)
    events.hub.pausePlugin(plugin, open !== null)
    events.streams?.pausePlugin(plugin, open !== null)
    tools.health.setCircuit(plugin, open?.reason ?? null)
    if (open !== null) processLog.log('ERROR', `Plugin ${plugin}: ${open.reason}`, 'supervisor')
    else {
      // Not among the others: it may well go on as before.
      suspicion.confinement.confine(plugin)
      processLog.log('WARNING', `Plugin ${plugin} is tried again`, 'supervisor')
    }
  })
}
