import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { ToPrimary } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LaneSubscribers } from '../events/lane-subscribers.ts'
import type { RecordForwarder } from '../events/record-forwarder.ts'
import type { Health, Snapshots } from '../health/health.ts'
import type { Routing } from '../http/routes.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { LaneStreams } from '../streams/lane-streams.ts'
import type { OnReadyRunner } from './on-ready-runner.ts'

export interface LaneRegistrarOptions {
  readonly lanesWanted: number
  readonly routing: Routing
  readonly laneSubscribers: LaneSubscribers
  readonly laneStreams: LaneStreams
  readonly recordForwarder: RecordForwarder
  readonly jobs: Jobs
  readonly health: Health
  readonly onReadyRunner: OnReadyRunner
  readonly snapshots: Snapshots
  log(message: string): void
}

/** Registers what each lane hosts with the rest of the primary: its routes, subscriptions, jobs, listeners and the health of its plugins. */
export class LaneRegistrar {
  readonly #options: LaneRegistrarOptions
  /** Lanes that booted before the primary's own plugins, which register their routes first, however fast a lane boots. */
  readonly #early: Lane[] = []
  #isOpen = false
  #isServing = false
  /** Routes, jobs and subscribers that the new code of the lanes has no more are to be dropped. */
  #isCleanupDue = false

  constructor(options: LaneRegistrarOptions) {
    this.#options = options
  }

  /** The primary's own plugins have their routes: the lanes may register theirs. */
  open(): void {
    this.#isOpen = true
    for (const lane of this.#early.splice(0)) if (lane.state !== 'dead') this.register(lane)
  }

  /** The listener is up: `onReady` of the plugins may run. */
  serving(): void {
    this.#isServing = true
    this.#options.onReadyRunner.run()
  }

  /** A lane has booted: it gets its routes, and takes part. */
  register(lane: Lane): void {
    if (!this.#isOpen) {
      this.#early.push(lane)
      return
    }
    if (lane.role === 'probation') return this.#registerForRequests(lane)
    const refused = lane.role === 'regular' ? this.#registerRoutes(lane) : this.#withoutRoutes(lane)
    const isRefused = (plugin: string): boolean => refused.has(plugin)
    for (const subscription of lane.manifest!.subscriptions) {
      if (isRefused(subscription.plugin)) continue
      this.#options.laneSubscribers.add(lane, subscription.subscriberIndex, subscription)
    }
    this.#options.laneStreams.up(lane, isRefused)
    // Before its first request: its plugins never see an empty snapshot.
    lane.post(this.#options.snapshots.take())
    if (this.#isServing) this.#options.onReadyRunner.run()
  }

  /** @returns plugins that were refused, because a route of theirs belongs to another plugin */
  #registerRoutes(lane: Lane): Set<string> {
    const { routing, health, jobs } = this.#options
    const { plugins } = lane.manifest!
    const refused = new Set<string>()
    health.setPlugins(lane, plugins)
    const numbers = routing.register(lane, (plugin, error) => {
      refused.add(plugin)
      health.setPlugins(lane, { [plugin]: { status: 'DEAD', error, tools: plugins[plugin]?.tools ?? [] } })
      this.#options.log(`Plugin ${plugin} failed in boot: ${error}`)
    })
    lane.post({ type: 'assign', routes: numbers, mounts: [...routing.mounts] })
    jobs.addOf(lane, (plugin) => refused.has(plugin))
    return refused
  }

  /** A lane that gets requests and nothing else. The regular lanes have said what is up, and what is refused. */
  #registerForRequests(lane: Lane): void {
    const { routing, snapshots } = this.#options
    const numbers = routing.register(lane, () => {})
    lane.post({ type: 'assign', routes: numbers, mounts: [...routing.mounts] })
    lane.post(snapshots.take())
  }

  /** A plugin that the lane runs without, because it took long to boot, has turned out not to boot. */
  leftOut(lane: Lane, file: string, error: string): void {
    const [plugin] = Object.entries(lane.manifest?.files ?? {}).find(([, path]) => path === file) ?? []
    if (plugin === undefined || lane.manifest!.plugins[plugin]?.status !== 'BOOTING') return
    lane.manifest!.plugins[plugin] = { status: 'DEAD', error, tools: [] }
    this.#options.health.setPlugins(lane, { [plugin]: lane.manifest!.plugins[plugin] })
    this.#options.log(`Plugin ${plugin} failed in boot: ${error}`)
  }

  #withoutRoutes(lane: Lane): Set<string> {
    lane.post({ type: 'assign', routes: lane.manifest!.routes.map(() => -1), mounts: [] })
    return new Set()
  }

  /** Handles a message of a lane. */
  onMessage(lane: Lane, message: ToPrimary): void {
    const { laneSubscribers, laneStreams, recordForwarder, health, jobs, onReadyRunner } = this.#options
    switch (message.type) {
      case 'subscribe':
        if (lane.role === 'probation') return
        return laneStreams.subscribe(lane, message.subscriberIndex, message.subscription, () =>
          laneSubscribers.add(lane, message.subscriberIndex, message.subscription, true),
        )
      case 'unsubscribe':
        laneStreams.unsubscribe(lane, message.subscriberIndex)
        return laneSubscribers.remove(lane, message.subscriberIndex)
      case 'listen':
        return recordForwarder.listen(lane, message.feed, message.on)
      case 'tool-status':
        // A tool call has set the word in shared memory itself; `registry.updateToolStatus` has not.
        return health.noteTool(message.tool, message.status, message.message, message.fault)
      case 'set-tool':
        return health.setTool(message.tool, message.status, message.message)
      case 'ready-done':
        return onReadyRunner.done(lane, message.plugin)
      case 'job-done':
        return jobs.done(message.run, message.error)
    }
  }

  /** Events, jobs and messages of sockets that are in flight in a lane. @param unread deliveries that it never began */
  workInFlight(lane: Lane, unread: ReadonlySet<number>): WorkInFlight[] {
    const { laneSubscribers, laneStreams, jobs } = this.#options
    return [
      ...laneSubscribers.worksOf(lane, unread),
      ...laneStreams.worksOf(lane),
      ...jobs.workInFlight(lane),
      ...lane.sockets.workInFlight(),
    ]
  }

  /** True while the lane runs a job or an `onReady` that it should be let finish. */
  isBusy(lane: Lane): boolean {
    const { jobs, onReadyRunner } = this.#options
    return jobs.workInFlight(lane).length > 0 || onReadyRunner.isBusy(lane)
  }

  /** A lane gets no new work. */
  laneLeaving(lane: Lane): void {
    this.#stop(lane)
    this.#options.health.threadLeft(lane)
  }

  #stop(lane: Lane): void {
    this.#options.laneStreams.leaving(lane)
    this.#options.laneSubscribers.leave(lane)
  }

  /** A lane has died, and gets no new work, though what it has begun may go on. What it said of its plugins holds until another says it anew. */
  laneDied(lane: Lane): void {
    this.#stop(lane)
    this.#options.health.threadGone(lane)
  }

  /**
   * A lane is gone.
   * @param unread deliveries that it never began
   * @param blackBox null when it was told to end
   */
  laneGone(lane: Lane, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    const { health, recordForwarder, jobs, laneSubscribers, laneStreams, onReadyRunner } = this.#options
    laneStreams.gone(lane, blackBox)
    if (blackBox === null) health.threadLeft(lane)
    recordForwarder.gone(lane)
    jobs.laneGone(lane, blackBox)
    laneSubscribers.forget(lane, unread, blackBox)
    onReadyRunner.laneGone(lane, blackBox)
  }

  /** All lanes have new code. @param ready the lanes that take work */
  codeChanged(ready: readonly Lane[]): void {
    this.#isCleanupDue = true
    this.lanesChanged(ready)
  }

  /**
   * Drops what no lane hosts any more, after a reload or a death. Not before all lanes are up: a lane that is down has not said what it
   * hosts.
   * @param ready the lanes that take work
   */
  lanesChanged(ready: readonly Lane[]): void {
    const { lanesWanted, health, routing, jobs, laneSubscribers } = this.#options
    if (ready.length < lanesWanted) return
    health.allReported()
    if (this.#isCleanupDue) {
      this.#isCleanupDue = false
      routing.keepHosted(ready)
      jobs.keepHosted(ready)
    }
    laneSubscribers.dropVacant()
  }
}
