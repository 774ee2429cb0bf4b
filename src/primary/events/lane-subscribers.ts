// A lane as a thread with subscribers.

import type { LostReason } from '../../contracts/event-bus.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriptionManifest } from '../../transport/messages.ts'
import type { Lane } from '../dispatch/lane.ts'
import type { SubscriberInstance, SubscriberThread } from './consumer.ts'
import type { Hub } from './hub.ts'

/** Maximum number of deliveries in flight in one lane. Requests have a budget of their own, so that a flood of events cannot starve them. */
const LANE_MAX_DELIVERIES = 1024

/** A lane as the hub sees it. */
class LaneSubscriberThread implements SubscriberThread {
  readonly #lane: Lane

  constructor(lane: Lane) {
    this.#lane = lane
  }

  get threadId(): number {
    return this.#lane.heartbeat.threadId
  }

  get laneIndex(): number {
    return this.#lane.index
  }

  get deliveriesInFlight(): number {
    return this.#lane.deliveriesInFlight
  }

  get isQuarantine(): boolean {
    return this.#lane.role === 'quarantine'
  }

  get isStill(): boolean {
    return !this.#lane.responsive
  }

  get heldMs(): number {
    return this.#lane.heldMs
  }

  get hasRoom(): boolean {
    const { state, responsive, deliveriesInFlight } = this.#lane
    const max = this.isQuarantine ? 1 : LANE_MAX_DELIVERIES
    return state === 'ready' && responsive && deliveriesInFlight < max
  }

  get room(): number {
    const max = this.isQuarantine ? 1 : LANE_MAX_DELIVERIES
    return this.hasRoom ? max - this.#lane.deliveriesInFlight : 0
  }

  send(deliveryId: number, frame: EventFrame): boolean {
    return this.#lane.sendDelivery(deliveryId, frame)
  }

  lose(deliveryId: number, reason: LostReason): void {
    this.#lane.post({ type: 'delivery-lost', delivery: deliveryId, reason })
  }

  abandon(deliveryId: number, reason: LostReason): void {
    this.#lane.abandonDelivery(deliveryId)
    this.lose(deliveryId, reason)
  }
}

interface LaneEntry {
  readonly thread: LaneSubscriberThread
  /** By the subscriber's index in the lane: its instance, and the function that ends its subscription. */
  readonly instances: Map<number, { instance: SubscriberInstance; leave: () => void }>
}

/** The subscriptions of each lane at the hub. */
export class LaneSubscribers {
  readonly #hub: Hub
  readonly #lanes = new Map<Lane, LaneEntry>()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  /** The lane as the hub knows it. */
  threadOf(lane: Lane): LaneSubscriberThread {
    return this.#of(lane).thread
  }

  /** @param isTemporary true when it subscribed after its plugin had booted */
  add(lane: Lane, subscriberIndex: number, subscription: SubscriptionManifest, isTemporary = false): void {
    const { event, identity, plugin, options } = subscription
    const { thread, instances } = this.#of(lane)
    const instance: SubscriberInstance = {
      thread,
      subscriberIndex,
      plugin,
      identity,
      isPaused: false,
      isTemporary,
    }
    instances.set(subscriberIndex, {
      instance,
      leave: this.#hub.subscribe(event, options.group ?? identity, options, instance),
    })
  }

  /** All subscribers of the lane have been added. */
  complete(lane: Lane): void {
    const { thread } = this.#of(lane)
    if (lane.role === 'quarantine') this.#hub.quarantineUp(thread)
  }

  remove(lane: Lane, subscriberIndex: number): void {
    const { instances } = this.#of(lane)
    instances.get(subscriberIndex)?.leave()
    instances.delete(subscriberIndex)
  }

  /** Reads everything the lanes have written so far. */
  catchUp(): void {
    for (const lane of this.#lanes.keys()) lane.catchUp()
  }

  /** Sends the lane no more events. It finishes the ones it has. */
  leave(lane: Lane): void {
    this.#hub.threadLeaving(this.#of(lane).thread)
  }

  /** Events in progress in the lane. @param unread deliveries it never started */
  worksOf(lane: Lane, unread: ReadonlySet<number>): WorkInFlight[] {
    return this.#hub.inFlightAt(this.#of(lane).thread, unread)
  }

  /** The lane is gone: its deliveries go to the others. */
  forget(lane: Lane, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    this.#hub.threadGone(this.#of(lane).thread, unread, blackBox)
    this.#lanes.delete(lane)
  }

  /** All lanes are up: consumers without an instance are removed. */
  dropVacant(): void {
    this.#hub.dropVacant()
  }

  #of(lane: Lane): LaneEntry {
    let entry = this.#lanes.get(lane)
    if (entry === undefined) {
      entry = { thread: new LaneSubscriberThread(lane), instances: new Map() }
      this.#lanes.set(lane, entry)
    }
    return entry
  }
}
