import type { SubscribeOptions, TopologyEntry } from '../../contracts/event-bus.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { WireError } from '../../core/errors/wire.ts'
import type { Clock, Timer } from '../../core/schedule/clock.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import {
  type Consumer,
  type Delivery,
  deliveryOf,
  type GroupWatcher,
  type HubEvent,
  hubEventOf,
  type Requester,
  type Share,
  type SubscriberInstance,
  type SubscriberThread,
} from './consumer.ts'
import { Deliveries, type DeliveriesOptions, SUBSCRIBER_GONE } from './deliveries.ts'
import type { DeliveryTrace } from './delivery-trace.ts'
import type { ParkedKeys } from './key-order.ts'
import { POISON_DEATHS } from './quarantine.ts'
import { letterPlace, Records } from './records.ts'
import { awaitReply, replySettled } from './requester.ts'
import { type Topic, Topology } from './topology.ts'

export { POISON_DEATHS }

export interface HubOptions extends DeliveriesOptions {
  /** EVENT_BUS_MAX_DEAD_BYTES; its default when left out. */
  maxDeadBytes?: number
  /** EVENT_BUS_MAX_NAMES; its default when left out. */
  maxNames?: number
  /** True when the durable log is so full that nothing new should be begun; never when left out. */
  isLogCrowded?: () => boolean
}

/**
 * The event hub of the in-process bus: publisher → hub → thread → acknowledgement.
 * It knows who subscribes, makes a published event a delivery for each consumer, and remembers what happened.
 */
export class Hub {
  readonly records: Records
  readonly clock: Clock
  readonly #log: HubOptions['log']
  readonly #topology: Topology
  readonly #deliveries: Deliveries
  /** Time limits of requests that wait for a reply. */
  readonly #requestTimers = new Set<Timer>()
  readonly #isLogCrowded: () => boolean
  groups: GroupWatcher | null = null
  #closed = false

  constructor(options: HubOptions) {
    this.#isLogCrowded = options.isLogCrowded ?? (() => false)
    this.#log = options.log
    this.clock = options.clock
    this.#topology = new Topology(options.maxNames)
    this.records = new Records(options, options.maxDeadBytes)
    this.#deliveries = new Deliveries(options, this.records, ({ event, group }) =>
      this.#topology.consumer(event, group),
    )
  }

  get trace(): DeliveryTrace {
    return this.#deliveries.trace
  }

  /** Deliveries that are accepted and not finished. */
  get pending(): number {
    return this.#deliveries.budget.pending
  }

  /** Those of them that no thread has. */
  get queued(): number {
    return this.pending - this.#deliveries.unansweredCount
  }

  /** Those of them that end with the process: neither a broker nor the log has them. */
  get unstored(): number {
    return this.#deliveries.budget.unstored
  }

  /** Keys that wait behind dead letters. */
  get parked(): ParkedKeys {
    return this.#deliveries.parked
  }

  /** True when the queue is so full that nothing new should be begun. */
  get isCrowded(): boolean {
    return this.#deliveries.budget.isCrowded || this.#isLogCrowded()
  }

  // ── subscribers ───────────────────────────────────────────────────────────

  subscribe(event: string, group: string, options: SubscribeOptions, instance: SubscriberInstance): () => void {
    const consumer = this.#topology.addInstance(event, group, options, instance)
    const { isTemporary = false, thread } = instance
    if (!isTemporary && !thread.isQuarantine && !consumer.broadcast) this.groups?.joined(event, group)
    this.#deliveries.subscribersChanged()
    return () => {
      // The subscribers of a thread that ends are gone before they say so.
      const isForGood = consumer.instances.includes(instance)
      if (this.#topology.removeInstance(consumer, instance)) this.#leave(consumer, isForGood)
    }
  }

  /** The last instance of a consumer has unsubscribed: nobody wants what still waits, or comes back to wait. */
  #leave(consumer: Consumer, isForGood = false): void {
    consumer.isGone = true
    this.groups?.left(consumer.event, consumer.group, isForGood)
    this.#deliveries.dropWaiting(consumer)
  }

  /** A quarantine lane is up, and all its subscribers are known. */
  quarantineUp(thread: SubscriberThread): void {
    this.#deliveries.quarantineUp(thread)
  }

  /** A thread gets nothing more. It may finish what it has. */
  threadLeaving(thread: SubscriberThread): void {
    this.#topology.removeThread(thread)
    this.#deliveries.threadLeaving(thread)
  }

  /**
   * A thread is gone: its instances leave, and the deliveries that it had not answered go to others.
   * @param unread deliveries that it never began: they are under no suspicion
   * @param blackBox what is known of its death; null when it ended because it was told to
   */
  threadGone(thread: SubscriberThread, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    this.threadLeaving(thread)
    this.#deliveries.threadGone(thread, unread, blackBox)
  }

  /** Removes the consumers that no thread has any more: the code is new, or their last thread died and its successor lacks them. */
  dropVacant(): void {
    for (const consumer of this.#topology.vacant()) {
      const dropped = this.#deliveries.countWaiting(consumer)
      if (dropped > 0) {
        const but = this.groups?.isKnown(consumer.event, consumer.group) ? ', but for those in the event log' : ''
        this.#log('WARNING', `${consumer.group} is gone: ${dropped} events that waited for it are dropped${but}`)
      }
      this.#topology.drop(consumer)
      this.#leave(consumer)
    }
  }

  /** The deliveries that a thread has not answered, the oldest first. */
  inFlightAt(thread: SubscriberThread, unread: ReadonlySet<number>): WorkInFlight[] {
    return this.#deliveries.inFlightAt(thread, unread)
  }

  /** Pauses the subscribers of a plugin, so that their events wait, or resumes them. */
  pausePlugin(plugin: string, isPaused: boolean): void {
    this.#topology.pause(plugin, isPaused)
    if (!isPaused) this.subscribersChanged()
  }

  /** Subscribers go on: waiting deliveries may have room. */
  subscribersChanged(): void {
    this.#deliveries.subscribersChanged()
  }

  /** The code is new: plugins that had published too many events begin anew. */
  forgetNames(): void {
    this.#topology.forgetNames()
  }

  topology(): Record<string, TopologyEntry> {
    return this.#topology.entries()
  }

  /** The groups that an event goes to now, without broadcasts. */
  groupsOf(event: string): string[] {
    return this.#topology.consumersOf(event).flatMap(({ group, broadcast }) => (broadcast ? [] : [group]))
  }

  /** True when somebody gets the event now. */
  hasSubscribers(event: string): boolean {
    return this.#topology.hasConsumer(event)
  }

  /** Those of which all threads get it. */
  broadcastGroupsOf(event: string): string[] {
    return this.#topology.consumersOf(event).flatMap(({ group, broadcast }) => (broadcast ? [group] : []))
  }

  hasConsumer(event: string, group: string): boolean {
    return this.#topology.consumer(event, group) !== undefined
  }

  // ── publishing ────────────────────────────────────────────────────────────

  /** Takes an event. @throws EVENT_BUS_FULL, EVENT_NAMES_LIMIT */
  publish(event: EventFrame, origin: SubscriberThread | null, requester: Requester | null = null): void {
    if (this.#closed) throw new HeddleError('EVENT_BUS_FULL', 'The service is shutting down and takes no more events')
    const consumers = this.#topology.consumersOf(event.event)
    if (consumers.length > 0) this.#checkRoom(event, consumers)
    this.#fired(this.#topology.emitting(event.event, event.emitter), event, origin)
    if (consumers.length === 0) return
    const expiresMs = event.ttlMs === 0 ? 0 : this.clock.nowMs() + event.delayMs + event.ttlMs
    // One more until all deliveries have been accepted: there may be none.
    if (requester !== null) requester.open++
    this.#take(hubEventOf(event, expiresMs, null, requester), consumers, null)
    if (requester !== null) replySettled(requester, SUBSCRIBER_GONE)
  }

  /**
   * Takes an event that the durable log or a broker has. It is never refused: whoever calls it has asked for room.
   * @param shares its deliveries that are left; null: all
   * @returns how many deliveries it has here
   */
  take(event: HubEvent, shares: readonly Share[] | null): number {
    // A broker gives it to another process.
    if (this.#closed && event.source?.isBroker) return 0
    return this.#take(event, this.#topology.consumersOf(event.event), shares)
  }

  #take(event: HubEvent, consumers: readonly Consumer[], shares: readonly Share[] | null): number {
    if (shares === null && consumers.length === 1 && !consumers[0]!.broadcast) {
      const delivery = deliveryOf(consumers[0]!.queue, event, null)
      this.#deliveries.accept(delivery)
      this.#deliveries.begin(delivery, null)
      return 1
    }
    const taken: { delivery: Delivery; share: Share | null }[] = []
    for (const consumer of consumers) {
      const share = shares === null ? null : shares.find(({ group }) => group === consumer.group)
      if (share === undefined) continue
      for (const queue of consumer.queuesFor(share?.instance))
        taken.push({ delivery: deliveryOf(queue, event, share), share })
    }
    for (const { delivery } of taken) this.#deliveries.accept(delivery)
    // When all have been accepted: the first may end at once.
    for (const { delivery, share } of taken) this.#deliveries.begin(delivery, share)
    return taken.length
  }

  #checkRoom({ event, key, payload, parentId, requestId }: EventFrame, consumers: readonly Consumer[]): void {
    const { budget, held, parked } = this.#deliveries
    budget.check(consumers.length, payload.length, parentId === null && requestId === null)
    if (held.deliveries > 0 && key !== null) {
      const parking = consumers.filter(({ group }) => parked.find({ event, group, key }) !== undefined).length
      if (parking > 0) budget.checkHeld(held, parking, payload.length)
    }
    if (!this.#topology.hasPaused) return
    const paused = consumers.filter(({ isPaused }) => isPaused).length
    if (paused > 0) budget.checkPaused(this.#topology.pausedPending(), paused, payload.length)
  }

  /** Records an event that a broker has taken, and tells the listeners. One name too many is in the trace alone. */
  record(event: EventFrame, origin: SubscriberThread | null): void {
    let topic: Topic
    try {
      topic = this.#topology.emitting(event.event, event.emitter)
    } catch {
      // Its own replica has let it pass: it has more names than this one allows, or its lanes have together.
      return this.records.published(event, this.#topology.subscribersOf(event.event), origin)
    }
    this.#fired(topic, event, origin)
  }

  #fired(topic: Topic, event: EventFrame, origin: SubscriberThread | null): void {
    topic.fireCount++
    this.records.published(event, topic.subscribers, origin)
  }

  /** Publishes and resolves with the first object that a subscriber returns. */
  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    if (!this.#topology.hasConsumer(event.event)) {
      return Promise.reject(new HeddleError('EVENT_BUS_NO_SUBSCRIBER', `Nobody subscribes to ${event.event}`))
    }
    return awaitReply(this.clock, event.event, timeoutMs, this.#requestTimers, (requester) =>
      this.publish(event, origin, requester),
    )
  }

  /** This process ends: a broker gets back the deliveries between two attempts, and those that fail from now on. */
  returnDelayed(): void {
    this.#deliveries.returnDelayed()
  }

  /** What each subscriber has waiting and has done: for whoever shares the work with other processes. */
  workloads(): Iterable<Consumer> {
    return this.#topology.consumers()
  }

  /** Ends deliveries of stored events that no thread has at present: they stay in the log. @param isWanted told the position of an event */
  takeBack(isWanted: (position: number) => boolean): void {
    this.#deliveries.takeBack(this.#topology.consumers(), isWanted)
  }

  /** Delivers a dead letter once more, to its consumer alone. False when there is no such letter, or no such consumer. */
  replayDeadLetter(id: string): boolean {
    const letter = this.records.deadLetter(id)
    if (letter === undefined) return false
    const consumer = this.#topology.consumer(letter.event.event, letter.group)
    if (consumer === undefined) return false
    const again = { ...letter.event, trace: letter.event.producer, delayMs: 0 }
    const event = hubEventOf(again, 0, null)
    this.records.beginReplay(letter, event)
    if (letter.parks) this.parked.replaying(letterPlace(letter), id, event)
    const delivery = deliveryOf(consumer.queue, event, null)
    this.#deliveries.accept(delivery)
    this.#deliveries.begin(delivery, null)
    return true
  }

  // ── answers of the threads ────────────────────────────────────────────────

  delivered(deliveryId: number): void {
    this.#deliveries.delivered(deliveryId)
  }

  /** The delivery was handled, and the subscriber returned an object to a publisher who waits for it. */
  deliveryReply(deliveryId: number, reply: string): void {
    this.#deliveries.replied(deliveryId, reply)
  }

  deliveryFailed(deliveryId: number, error: WireError): void {
    this.#deliveries.failed(deliveryId, error)
  }

  /** Takes no more events. Deliveries that are under way may still be answered. */
  close(): void {
    this.#closed = true
    for (const timer of this.#requestTimers) this.clock.cancel(timer)
    this.#deliveries.close()
  }
}
