// What the rest of the primary does when a lane boots, reports, stands still, leaves or dies.
import type { LogLevel } from '../../contracts/logger.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { messageOf, stackOf } from '../../core/errors/description.ts'
import { serve } from '../../runtime/host/services.ts'
import { ClaimMemory } from '../../transport/memory/claim-memory.ts'
import type { Manifest, ToPrimary } from '../../transport/messages.ts'
import type { Lane, LaneListener, UnfinishedWork } from '../dispatch/lane.ts'
import type { PlacedRequest } from '../dispatch/request-slots.ts'
import { handlersIn } from '../flight/work.ts'
import { OnReadyRunner } from '../jobs/on-ready-runner.ts'
import { answerOf, type LaneDeath, LaneDeaths } from './black-box.ts'
import type { LaneParts } from './lane-parts.ts'
import type { LaneThread } from './lane-set.ts'
import type { Standstill } from './watchdog.ts'

/** Handlers and requests that one line names at most. */
const NAMED_MAX = 10

/**
 * Registers what each lane hosts with the rest of the primary: its routes, subscriptions, jobs, listeners and the health of its plugins. The supervisor
 * and the lanes tell it everything; the order in which the others hear of it is here.
 */
export class LaneRegistrar {
  /** Where each kind of frame of a lane goes. */
  readonly listener: Omit<LaneListener, 'onMessage'>
  readonly #parts: LaneParts
  readonly #deaths: LaneDeaths
  readonly #onReadyRunner: OnReadyRunner
  readonly #claims: ClaimMemory
  /** Lanes that booted before the primary's own plugins, which register their routes first, however fast a lane boots; null afterwards. */
  #early: Lane[] | null = []
  #isServing = false
  /** Routes, jobs and subscribers that the new code of the lanes has no more are to be dropped. */
  #isCleanupDue = false
  /** Those that have been told, by whichever lane. */
  readonly #unseenVariables = new Set<string>()

  constructor(parts: LaneParts) {
    const { kernel, lanes } = parts
    this.#parts = parts
    this.#claims = new ClaimMemory(kernel.shared.claims)
    this.#onReadyRunner = new OnReadyRunner(
      () => lanes.regular,
      (message) => kernel.writeLog('ERROR', message, 'kernel'),
    )
    this.#deaths = new LaneDeaths(parts, (lane, unread) => this.workInFlight(lane, unread))
    this.listener = this.#listen()
  }

  log(level: LogLevel, message: string, fields?: Record<string, unknown>): void {
    this.#parts.kernel.writeLog(level, message, 'supervisor', fields)
  }

  #listen(): Omit<LaneListener, 'onMessage'> {
    const { events, kernel, processLog, services } = this.#parts
    const { hub, laneSubscribers } = events
    return {
      onPublish: (lane, event) => hub.publish(event, laneSubscribers.threadOf(lane)),
      onStored: (lane, event) => events.durable.take(event, laneSubscribers.threadOf(lane)),
      onRecord: (lane, event) => hub.record(event, laneSubscribers.threadOf(lane)),
      deliveries: hub,
      onCall: (tool, method, args) =>
        tool === '#host' ? serve(services, method, args) : kernel.toolbox.serve(tool, method, args),
      onLog: (lane, record) => processLog.record(record, lane),
      onFault: (lane, error) => this.onFault(lane, error),
    }
  }

  /** A fault of the primary while it did something for a lane. */
  onFault({ index }: Lane, error: unknown): void {
    this.log('ERROR', `A message of lane ${index} was not handled: ${messageOf(error)}`, { stack: stackOf(error) })
  }

  // ── a lane is up ──────────────────────────────────────────────────────────

  /** The primary's own plugins have their routes: the lanes may register theirs. */
  open(): void {
    const early = this.#early ?? []
    this.#early = null
    for (const lane of early) if (lane.state !== 'dead') this.#register(lane)
  }

  /** The listener is up: `onReady` of the plugins may run. */
  serving(): void {
    this.#isServing = true
    this.#onReadyRunner.run()
  }

  /** A lane has booted: it gets its routes, and takes part. */
  booted(lane: Lane): void {
    if (this.#early === null) this.#register(lane)
    else this.#early.push(lane)
    this.#parts.events.laneSubscribers.complete(lane)
  }

  /**
   * What it hosts takes part: of a regular lane all, of the quarantine lane its subscriptions, of the probation lane its routes. The regular lanes
   * have said what is up, and what is refused.
   */
  #register(lane: Lane): void {
    const { events, health, routing, jobs, snapshots } = this.#parts
    const { plugins, routes, subscriptions } = lane.manifest!
    const isRegular = lane.role === 'regular'
    const refused = new Set<string>()
    const refuse = (plugin: string, error: string): void => {
      refused.add(plugin)
      if (!isRegular) return
      health.setPlugins(lane, { [plugin]: { status: 'DEAD', error, tools: plugins[plugin]?.tools ?? [] } })
      this.#notBooted(plugin, error)
    }
    if (isRegular) health.setPlugins(lane, plugins)
    const hasRoutes = lane.role !== 'quarantine'
    const numbers = hasRoutes ? routing.register(lane, refuse) : routes.map(() => -1)
    lane.post({ type: 'assign', routes: numbers, mounts: hasRoutes ? [...routing.mounts] : [] })
    if (isRegular) jobs.addOf(lane, (plugin) => refused.has(plugin))
    if (lane.role !== 'probation') {
      for (const subscription of subscriptions) {
        if (!refused.has(subscription.plugin))
          events.laneSubscribers.add(lane, subscription.subscriberIndex, subscription)
      }
    }
    // Before its first request: its plugins never see an empty snapshot.
    lane.post(snapshots.take())
    if (this.#isServing) this.#onReadyRunner.run()
  }

  #notBooted(plugin: string, error: string): void {
    this.#parts.kernel.writeLog('ERROR', `Plugin ${plugin} failed in boot: ${error}`, 'kernel')
  }

  /** A plugin that lanes run without, because it took long to boot, has turned out not to boot. */
  leftOut(file: string, error: string): void {
    for (const lane of this.#parts.lanes.all) {
      const [plugin] = Object.entries(lane.manifest?.files ?? {}).find(([, path]) => path === file) ?? []
      if (plugin === undefined || lane.manifest!.plugins[plugin]?.status !== 'BOOTING') continue
      lane.manifest!.plugins[plugin] = { status: 'DEAD', error, tools: [] }
      this.#parts.health.setPlugins(lane, { [plugin]: lane.manifest!.plugins[plugin] })
      this.#notBooted(plugin, error)
    }
  }

  /** Why new code is refused, by the manifest of its first lane; null when it is taken. */
  refusalOf({ plugins, faults }: Manifest): string | null {
    return this.#parts.health.refusalOf(plugins, faults)
  }

  // ── what it says and does ─────────────────────────────────────────────────

  /** Handles a message of a lane, but for those of its boot and its end. */
  onMessage(lane: Lane, message: ToPrimary): void {
    const { events, health, snapshots, jobs, pool, descriptors } = this.#parts
    const { laneSubscribers, recordForwarder } = events
    switch (message.type) {
      case 'subscribe':
        if (lane.role !== 'probation') laneSubscribers.add(lane, message.subscriberIndex, message.subscription, true)
        events.durable.subscribed()
        return snapshots.sendSoon()
      case 'unsubscribe':
        laneSubscribers.remove(lane, message.subscriberIndex)
        return snapshots.sendSoon()
      case 'listen':
        return recordForwarder.listen(lane, message.feed, message.on)
      case 'tool-status':
        // A tool call has set the word in shared memory itself; `registry.updateToolStatus` has not.
        return health.noteTool(message.tool, message.status, message.message, message.fault)
      case 'set-tool':
        return health.setTool(message.tool, message.status, message.message)
      case 'unbegun':
        return lane.unbegun(message.deliveries)
      case 'cancelled':
        return events.durable.cancelled()
      case 'reported':
        return events.durable.reported(message.id)
      case 'event-moved':
        return events.durable.moved(message.event, message.dueMs)
      case 'heartbeat':
        return events.hub.heartbeat(message.delivery)
      case 'ready-done':
        return this.#onReadyRunner.done(message.plugin)
      case 'job-done':
        return jobs.done(message.run, message.error)
      case 'store-written':
        return events.storeWriter.written(message.batch, message.error, message.answer)
      case 'pool-uses':
        return pool.report(`lane ${lane.index}`, message.uses)
      case 'open-files':
        return descriptors.report(lane, message.holders)
      case 'unseen-variable': {
        const { name, message: text, plugin = 'supervisor' } = message
        if (!this.#unseenVariables.has(name)) this.#parts.kernel.writeLog('WARNING', text, plugin)
        this.#unseenVariables.add(name)
      }
    }
  }

  /** Events, jobs and messages of sockets that are in flight in a lane. @param unread deliveries that it never began */
  workInFlight(lane: Lane, unread: ReadonlySet<number> = new Set()): WorkInFlight[] {
    const { events, jobs } = this.#parts
    return [...events.laneSubscribers.worksOf(lane, unread), ...jobs.workInFlight(lane), ...lane.sockets.workInFlight()]
  }

  /** True while the lane runs a job or an `onReady` that it should be let finish. */
  isBusy(lane: Lane): boolean {
    return this.#parts.jobs.workInFlight(lane).length > 0 || this.#onReadyRunner.isBusy(lane)
  }

  // ── it stands still ───────────────────────────────────────────────────────

  /** The loop of a lane turns again after it stood still for so long that its stack was taken. */
  recovered(lane: Lane, standstill: Standstill): void {
    this.#deaths.onRecovered(lane, standstill)
  }

  /** Handlers that do not settle hold so much of a lane that it is replaced. */
  wornOut(lane: Lane): void {
    const names = handlersIn(lane, this.#parts.routing).map(({ plugin, handler }) => `${handler} (${plugin})`)
    const held = 'half of LANE_MAX_INFLIGHT, or of its room for messages of WebSockets'
    const text = `Lane ${lane.index} is replaced: handlers that do not settle, though nobody waits for them any more, hold ${held}`
    this.log('WARNING', `${text}: ${names.slice(0, NAMED_MAX).join(', ')}`)
  }

  // ── its end ───────────────────────────────────────────────────────────────

  /** A lane gets no new work, and ends as soon as it has none. */
  leaving(lane: Lane): void {
    this.#parts.events.laneSubscribers.leave(lane)
    this.#parts.health.threadLeft(lane)
  }

  /**
   * A lane has died, or is dying: then it gets nothing more, and what it has may still be answered. What it said of its plugins holds until another says
   * it anew.
   * @returns what is kept of it
   */
  died(lane: LaneThread, death: LaneDeath): BlackBox {
    this.#parts.events.laneSubscribers.leave(lane)
    this.#parts.health.threadGone(lane)
    return this.#deaths.onDeath(lane, death)
  }

  /**
   * A lane is gone.
   * @param unfinished what it has not answered
   * @param box null when it was told to end
   */
  gone(lane: Lane, { requests, unreadDeliveries }: UnfinishedWork, box: BlackBox | null): void {
    const { events, kernel, health, jobs } = this.#parts
    const { threadId } = lane.heartbeat
    events.storeWriter.laneGone(lane)
    events.durable.laneGone()
    if (box === null) this.#logUndone(lane, requests)
    for (const { exchange } of requests) exchange.fail(box === null ? 'HTTP_INTERNAL' : answerOf(box))
    kernel.toolbox.threadGone(threadId)
    this.#claims.threadGone(threadId)
    if (box === null) health.threadLeft(lane)
    events.recordForwarder.gone(lane)
    jobs.laneGone(lane, box)
    events.laneSubscribers.forget(lane, unreadDeliveries, box)
    this.#onReadyRunner.laneGone(lane, box)
  }

  /** The thread of a lane that was given up has ended: it may have committed events meanwhile. */
  ended(): void {
    this.#parts.events.durable.laneGone()
  }

  /** Says which requests a lane had to leave. */
  #logUndone({ index }: Lane, requests: readonly PlacedRequest[]): void {
    const undone = requests.filter(({ isStream }) => !isStream)
    if (undone.length === 0) return
    const names = undone.slice(0, NAMED_MAX).map(({ exchange: { label, plugin } }) => `${label} (${plugin})`)
    const text = `Lane ${index} was ended without the answer to ${undone.length} requests`
    this.log('WARNING', `${text}: ${names.join(', ')}`)
  }

  // ── all of them ───────────────────────────────────────────────────────────

  /** All lanes have new code. */
  codeChanged(): void {
    this.#isCleanupDue = true
    this.#dropUnhosted()
  }

  /** The set of lanes that take work has changed. */
  changed(): void {
    const { lanes, kernel, isolation, snapshots, routing, flightMirror } = this.#parts
    isolation.placeRequests()
    this.#dropUnhosted()
    snapshots.sendSoon()
    flightMirror?.nameSoon(() => lanes.all, routing, kernel.plugins.files)
  }

  /** Drops what no lane hosts any more, after a reload or a death. Not before all lanes are up: a lane that is down has not said what it hosts. */
  #dropUnhosted(): void {
    const { lanes, health, routing, jobs, events } = this.#parts
    const { ready } = lanes
    if (ready.length < lanes.wanted) return
    health.allReported()
    if (this.#isCleanupDue) {
      this.#isCleanupDue = false
      routing.keepHosted(ready)
      jobs.keepHosted(ready)
    }
    events.laneSubscribers.dropVacant()
  }
}
