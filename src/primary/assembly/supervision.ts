// Builds the supervision of the lanes.

import type { Settings } from '../../core/config/schema.ts'
import { messageOf, stackOf } from '../../core/errors/description.ts'
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
import type { FlightMirror } from '../supervision/crash-report.ts'
import { Guilt } from '../supervision/guilt.ts'
import { LaneRegistrar } from '../supervision/lane-registrar.ts'
import { OnReadyRunner } from '../supervision/on-ready-runner.ts'
import type { ProcessDeaths } from '../supervision/process-deaths.ts'
import { Supervisor, type SupervisorLink } from '../supervision/supervisor.ts'
import type { LaneCallHandler } from '../tools/lane-call-handler.ts'
import type { EventParts } from './events.ts'
import type { HttpParts } from './http.ts'
import type { ToolParts } from './tools.ts'

export interface GuiltParts {
  readonly guilt: Guilt
  /** Gives the dispatcher the lanes that take requests, each for its plugins. */
  placeRequests(): void
}

interface GuiltOptions {
  settings: Settings
  http: HttpParts
  events: EventParts
  tools: ToolParts
  link: SupervisorLink
  log: Log
}

/** What is known of the plugins' guilt, and where their requests go because of it. */
export function assembleGuilt({ settings, http, events, tools, link, log }: GuiltOptions): GuiltParts {
  const { routing, dispatcher } = http
  const { hub, laneSubscribers } = events
  const guilt = new Guilt({
    routing,
    lanes: () => link.supervisor.lanes.ready,
    onWanted: (isWanted) => link.supervisor.wantProbation(isWanted),
    // A lane reads streams by itself, and ahead: no lane reads for it, and other processes do.
    onStalling: (plugin, isStalling) => events.streams?.pausePlugin(plugin, isStalling, 'stalling'),
    onCircuit: (plugin, open) => {
      routing.close(plugin, open?.untilMs ?? 0)
      hub.pausePlugin(plugin, open !== null)
      events.streams?.pausePlugin(plugin, open !== null)
      tools.health.setCircuit(plugin, open?.reason ?? null)
      if (open !== null) log('ERROR', `Plugin ${plugin}: ${open.reason}`, 'supervisor')
      else log('WARNING', `Plugin ${plugin} is tried again`, 'supervisor')
    },
    onChange: placeRequests,
    log: (level, message) => log(level, message, 'supervisor'),
  })
  const placement = new RequestPlacement(routing.table, settings.lanes, guilt)
  return { guilt, placeRequests }

  function placeRequests(): void {
    const { serving, hasProbationBegun } = link.supervisor.lanes
    placement.place(serving, hasProbationBegun)
    dispatcher.setLanes(serving)
    for (const lane of serving) laneSubscribers.holdBack(lane, (plugin) => placement.isKeptFrom(lane, plugin))
    hub.subscribersChanged()
  }
}

export interface SupervisionParts {
  readonly supervisor: Supervisor
  readonly registrar: LaneRegistrar
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
  guilt: GuiltParts
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
  const { guilt, placeRequests } = options.guilt
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
    guilt,
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
    onStalled: (lane, stack) => guilt.stalled(lane, stack),
    onRecovered: (lane, standstill) => deaths.onRecovered(lane, standstill),
    onLeftOut: (file, reason) => {
      for (const lane of supervisor.lanes.all) registrar.leftOut(lane, file, reason)
    },
    onWornOut: (lane) => {
      const names = guilt.handlersIn(lane).map(({ plugin, handler }) => `${handler} (${plugin})`)
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
  return { supervisor, registrar, lanesChanged }

  function lanesChanged(): void {
    placeRequests()
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
