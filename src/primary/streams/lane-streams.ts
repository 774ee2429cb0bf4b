import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { STEP_STREAM_EVENT } from '../../transport/memory/flight-recorder.ts'
import type { SubscriptionManifest } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LaneSubscribers } from '../events/lane-subscribers.ts'
import { laneNames, workOfStep } from '../supervision/work.ts'
import type { StreamCoordinator } from './coordinator.ts'
import type { ReadingThread } from './reading-thread.ts'
import type { StreamLane } from './reading-threads.ts'

/** Tells the reading threads of the streams what becomes of each lane. Does nothing while the hub carries all events. */
export class LaneStreams {
  readonly #instances: LaneSubscribers
  readonly #threads = new Map<Lane, ReadingThread>()
  coordinator: StreamCoordinator | null = null

  constructor(instances: LaneSubscribers) {
    this.#instances = instances
  }

  /** A lane has booted. Lanes on demand read nothing: the quarantine lane gets its events from the hub, and the probation lane gets none. */
  up(lane: Lane, isRefused: (plugin: string) => boolean): void {
    const { coordinator } = this
    if (coordinator === null || lane.role !== 'regular') return
    const instances = this.#instances
    const link: StreamLane = {
      index: lane.index,
      get isResponsive() {
        return lane.responsive && lane.state === 'ready'
      },
      send: (command) => lane.post({ type: 'stream', command }),
      instanceOf: (subscriberIndex) => instances.instanceOf(lane, subscriberIndex),
      stopped: () => {
        lane.isReading = false
      },
    }
    lane.isReading = true
    const thread = coordinator.threads.laneUp(
      link,
      lane.manifest!.subscriptions.filter(({ plugin }) => !isRefused(plugin)),
    )
    this.#threads.set(lane, thread)
    lane.onStreamReport = (report) => coordinator.onReport(thread, report)
  }

  unsubscribe(lane: Lane, subscriberIndex: number): void {
    const thread = this.#threads.get(lane)
    if (thread !== undefined) this.coordinator!.threads.unsubscribe(thread, subscriberIndex)
  }

  /** @param addInstance gives the subscriber its instance in the hub; called when its group gets all that is published from then on */
  subscribe(lane: Lane, subscriberIndex: number, subscription: SubscriptionManifest, addInstance: () => void): void {
    const thread = this.#threads.get(lane)
    if (thread === undefined) return addInstance()
    this.coordinator!.threads.subscribe(thread, { ...subscription, subscriberIndex }, addInstance)
  }

  still(lane: Lane): void {
    const thread = this.#threads.get(lane)
    if (thread !== undefined) this.coordinator!.threads.laneStill(thread)
  }

  leaving(lane: Lane): void {
    const thread = this.#threads.get(lane)
    if (thread !== undefined) this.coordinator!.threads.laneLeaving(thread)
  }

  /** Events that the lane has read itself and is handling. A full recorder has overwritten the oldest. */
  worksOf(lane: Lane): WorkInFlight[] {
    if (!this.#threads.has(lane)) return []
    const nowMs = Date.now()
    const { subscriptions } = laneNames(lane)
    return lane.flight.steps().flatMap((step) => {
      const named = subscriptions[step.subject]
      if (step.kind !== STEP_STREAM_EVENT || step.endedMs !== 0 || named === undefined) return []
      return [workOfStep(step, named, nowMs)]
    })
  }

  gone(lane: Lane, blackBox: BlackBox | null): void {
    const thread = this.#threads.get(lane)
    if (thread === undefined) return
    this.#threads.delete(lane)
    lane.onStreamReport = () => {}
    this.coordinator!.threads.laneGone(thread, blackBox)
  }
}
