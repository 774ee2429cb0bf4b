import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { ToLane, ToPrimary } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LaneSubscribers } from '../events/lane-subscribers.ts'
import type { RecordForwarder } from '../events/record-forwarder.ts'
import type { Health } from '../health/health.ts'
import type { Routing } from '../http/routing.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { LaneStreams } from '../streams/lane-streams.ts'
import type { OnReadyRunner } from './on-ready-runner.ts'

export interface RegistrarParts {
  readonly routing: Routing
  readonly instances: LaneSubscribers
  readonly streams: LaneStreams
  readonly feeds: RecordForwarder
  readonly jobs: Jobs
  readonly health: Health
  readonly onReady: OnReadyRunner
  snapshot(): ToLane
  log(message: string): void
}

/** What the primary keeps of each lane: its routes, subscriptions, jobs, listeners and the health of its plugins. */
export class LaneRegistrar {
  readonly #parts: RegistrarParts
  /** Lanes that were up before the primary's own plugins: those have the first claim on routes, whoever boots faster. */
  readonly #early: Lane[] = []
  #isOpen = false
  #isReady = false

  constructor(parts: RegistrarParts) {
    this.#parts = parts
  }

  /** The primary's own plugins have their routes: now it is the lanes' turn. */
  open(): void {
    this.#isOpen = true
    for (const lane of this.#early.splice(0)) if (lane.state !== 'dead') this.adopt(lane)
  }

  /** The listener is up: `onReady` may run. */
  ready(): void {
    this.#isReady = true
    this.#parts.onReady.run()
  }

  /** A lane has booted: it gets its routes, and takes part. */
  adopt(lane: Lane): void {
    if (!this.#isOpen) {
      this.#early.push(lane)
      return
    }
    const { routing, health, instances, jobs, onReady } = this.#parts
    const { plugins, subscriptions, routes } = lane.manifest!
    const isRegular = lane.role === 'regular'
    const refused = new Set<string>()
    if (isRegular) {
      health.setPlugins(lane, plugins)
      const numbers = routing.adopt(lane, (plugin, error) => {
        refused.add(plugin)
        health.setPlugins(lane, { [plugin]: { status: 'DEAD', error, tools: plugins[plugin]?.tools ?? [] } })
        this.#parts.log(`Plugin ${plugin} failed in boot: ${error}`)
      })
      lane.post({ type: 'assign', routes: numbers, mounts: [...routing.mounts] })
      jobs.addOf(lane, (plugin) => refused.has(plugin))
    } else lane.post({ type: 'assign', routes: routes.map(() => -1), mounts: [] })
    for (const subscription of subscriptions) {
      if (!refused.has(subscription.plugin)) instances.add(lane, subscription.subscriberIndex, subscription)
    }
    this.#parts.streams.up(lane, (plugin) => refused.has(plugin))
    // Before its first request: its plugins never see an empty snapshot.
    lane.post(this.#parts.snapshot())
    if (this.#isReady) onReady.run()
  }

  /** What a lane says of itself. */
  onMessage(lane: Lane, message: ToPrimary): void {
    const { instances, streams, feeds, health, jobs, onReady } = this.#parts
    switch (message.type) {
      case 'subscribe':
        return streams.subscribe(lane, message.subscriberIndex, message.subscription, () =>
          instances.add(lane, message.subscriberIndex, message.subscription),
        )
      case 'unsubscribe':
        streams.unsubscribe(lane, message.subscriberIndex)
        return instances.remove(lane, message.subscriberIndex)
      case 'listen':
        return feeds.listen(lane, message.feed, message.on)
      case 'tool-status':
        // A tool call set the word itself; `registry.updateToolStatus` did not.
        return health.noteTool(message.tool, message.status, message.message)
      case 'set-tool':
        return health.setTool(message.tool, message.status, message.message)
      case 'ready-done':
        return onReady.done(lane, message.plugin)
      case 'job-done':
        return jobs.done(message.run, message.error)
    }
  }

  /** Events and jobs that a lane is at. */
  worksOf(lane: Lane, unread: ReadonlySet<number>): WorkInFlight[] {
    const { instances, streams, jobs } = this.#parts
    return [
      ...instances.worksOf(lane, unread),
      ...streams.worksOf(lane),
      ...jobs.worksOf(lane),
      ...lane.sockets.works(),
    ]
  }

  isBusy(lane: Lane): boolean {
    const { jobs, onReady } = this.#parts
    return jobs.worksOf(lane).length > 0 || onReady.isAt(lane)
  }

  /** A lane gets nothing new. */
  leaving(lane: Lane): void {
    this.#parts.streams.leaving(lane)
    this.#parts.instances.leave(lane)
  }

  /**
   * A lane is gone.
   * @param unread deliveries that it never began
   * @param blackBox null when it was told to end
   */
  gone(lane: Lane, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    const { health, feeds, jobs, instances, streams, onReady } = this.#parts
    streams.gone(lane, blackBox)
    if (blackBox === null) health.threadLeft(lane)
    else health.threadGone(lane)
    feeds.gone(lane)
    jobs.laneGone(lane, blackBox)
    instances.forget(lane, unread, blackBox)
    onReady.laneGone(lane, blackBox)
  }

  /** All lanes have the same code again: what none of them has is no more. */
  tidy(lanes: readonly Lane[]): void {
    this.#parts.routing.keepHosted(lanes)
    this.#parts.jobs.keepHosted(lanes)
    this.#parts.instances.dropVacant()
  }
}
