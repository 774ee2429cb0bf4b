import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { SubscriptionManifest } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { SubscriberInstance } from './consumer.ts'
import type { Hub } from './hub.ts'
import { LaneSubscriberThread } from './lane-event-host.ts'

interface Seated {
  readonly host: LaneSubscriberThread
  /** By the subscriber's number in the lane: its instance, and what ends its subscription. */
  readonly instances: Map<number, { instance: SubscriberInstance; leave: () => void }>
}

/** What each lane has subscribed to, in the hub's terms. */
export class LaneSubscribers {
  readonly #hub: Hub
  readonly #lanes = new Map<Lane, Seated>()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  /** What the hub knows a lane by. */
  hostOf(lane: Lane): LaneSubscriberThread {
    return this.#of(lane).host
  }

  add(lane: Lane, local: number, { event, identity, plugin, options }: SubscriptionManifest): void {
    const { host, instances } = this.#of(lane)
    const instance: SubscriberInstance = { host, local, plugin, identity, isPaused: false }
    instances.set(local, { instance, leave: this.#hub.subscribe(event, options.group ?? identity, options, instance) })
  }

  /** All that the lane hosts has been added. */
  complete(lane: Lane): void {
    if (lane.role === 'quarantine') this.#hub.hostUp(this.#of(lane).host)
  }

  remove(lane: Lane, local: number): void {
    const { instances } = this.#of(lane)
    instances.get(local)?.leave()
    instances.delete(local)
  }

  instanceOf(lane: Lane, local: number): SubscriberInstance | null {
    return this.#lanes.get(lane)?.instances.get(local)?.instance ?? null
  }

  /** The lane gets no more events, and finishes those that it has. */
  leave(lane: Lane): void {
    this.#hub.hostLeaving(this.#of(lane).host)
  }

  /** Events that the lane is at. @param unread deliveries that it never began */
  worksOf(lane: Lane, unread: ReadonlySet<number>): WorkInFlight[] {
    return this.#hub.inFlightAt(this.#of(lane).host, unread)
  }

  /** The lane is gone: what it had in flight goes to the others. */
  forget(lane: Lane, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    this.#hub.hostGone(this.#of(lane).host, unread, blackBox)
    this.#lanes.delete(lane)
  }

  /** No lane has the subscribers that have no instance now. */
  dropVacant(): void {
    this.#hub.dropVacant()
  }

  #of(lane: Lane): Seated {
    let seated = this.#lanes.get(lane)
    if (seated === undefined) {
      seated = { host: new LaneSubscriberThread(lane), instances: new Map() }
      this.#lanes.set(lane, seated)
    }
    return seated
  }
}
