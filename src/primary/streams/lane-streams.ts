import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { STEP_STREAM_EVENT } from '../../transport/memory/flight-recorder.ts'
import type { SubscriptionManifest } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { LaneSubscribers } from '../events/lane-subscribers.ts'
import type { StreamCoordinator, StreamLane } from './coordinator.ts'

/** What becomes of a lane, for whoever reads the streams. Does nothing while the hub carries all events. */
export class LaneStreams {
  readonly #instances: LaneSubscribers
  readonly #ends = new Map<Lane, StreamLane>()
  coordinator: StreamCoordinator | null = null

  constructor(instances: LaneSubscribers) {
    this.#instances = instances
  }

  /** The quarantine lane reads nothing: it gets what the hub gives it. */
  up(lane: Lane, isRefused: (plugin: string) => boolean): void {
    const { coordinator } = this
    if (coordinator === null || lane.role === 'quarantine') return
    const instances = this.#instances
    const end: StreamLane = {
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
    this.#ends.set(lane, end)
    lane.isReading = true
    coordinator.laneUp(
      end,
      lane.manifest!.subscriptions.filter(({ plugin }) => !isRefused(plugin)),
    )
    lane.onStreamReport = (report) => coordinator.onReport(end, report)
  }

  unsubscribe(lane: Lane, subscriberIndex: number): void {
    const end = this.#ends.get(lane)
    if (end !== undefined) this.coordinator!.laneUnsubscribed(end, subscriberIndex)
  }

  /** @param instance gives it its instance: when all that is published from then on is its, and it is still wanted */
  subscribe(lane: Lane, subscriberIndex: number, subscription: SubscriptionManifest, instance: () => void): void {
    const end = this.#ends.get(lane)
    if (end === undefined) return instance()
    this.coordinator!.laneSubscribed(end, subscriberIndex, subscription, instance)
  }

  still(lane: Lane): void {
    const end = this.#ends.get(lane)
    if (end !== undefined) this.coordinator!.laneStill(end)
  }

  leaving(lane: Lane): void {
    const end = this.#ends.get(lane)
    if (end !== undefined) this.coordinator!.laneLeaving(end)
  }

  /** Events that the lane has read itself and is at. A full recorder has overwritten the oldest. */
  worksOf(lane: Lane): WorkInFlight[] {
    if (!this.#ends.has(lane)) return []
    const nowMs = Date.now()
    const works: WorkInFlight[] = []
    for (const { kind, subject, id, begunMs, endedMs } of lane.flight.steps()) {
      if (kind !== STEP_STREAM_EVENT || endedMs !== 0) continue
      const subscription = lane.manifest?.subscriptions.find(({ subscriberIndex }) => subscriberIndex === subject)
      if (subscription === undefined) continue
      const { event, plugin } = subscription
      works.push({ kind: 'event', name: event, plugin, id: `evt_${id}`, for_ms: nowMs - begunMs })
    }
    return works
  }

  gone(lane: Lane, blackBox: BlackBox | null): void {
    const end = this.#ends.get(lane)
    if (end === undefined) return
    this.#ends.delete(lane)
    this.coordinator!.laneGone(end, blackBox)
  }
}
