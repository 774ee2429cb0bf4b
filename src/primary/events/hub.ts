// The life of an event in this process: publisher → hub → thread → acknowledgement.
import type { Cancelled, LostReason, SubscriberOptions, TopologyEntry } from '../../contracts/event-bus.ts'
import type { CancelTarget } from '../../contracts/events.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { HeddleError, type WireError } from '../../core/errors/catalogue.ts'
import type { Chance, Clock, Timer } from '../../core/schedule/clock.ts'
import { CANCEL_KEPT_MS, CANCELLED, Cancels, isMeant, isTree, type Revived } from '../../runtime/events/cancelling.ts'
import type { DeliverySink } from '../../runtime/events/event-server.ts'
import { otherKey } from '../../runtime/events/publication.ts'
import { type EventFrame, type UniqueEvent, WANTS_REPLY } from '../../transport/frames/event-frame.ts'
import {
  type Consumer,
  type Delivery,
  type DeliveryChange,
  type DeliveryQueue,
  deliveryOf,
  type FailedDelivery,
  type Failure,
  type GroupWatcher,
  type HubEvent,
  hubEventOf,
  NEW_SHARE,
  type Requester,
  type Share,
  type SubscriberInstance,
  type SubscriberThread,
} from './consumer.ts'
import { MemoryDeadLetters } from './dead-letters.ts'
import { DeliveryCounts } from './delivery-counts.ts'
import { become } from './delivery-state.ts'
import { DeliveryTrace } from './delivery-trace.ts'
import { type BlockedKeys, KeyOrder } from './key-order.ts'
import type { Pause, Pauses } from './pauses.ts'
import { Permits, type SharedPermits } from './permits.ts'
import { POISON_DEATHS, poisonMessage, Quarantine } from './quarantine.ts'
import { QueueBudget } from './queue-budget.ts'
import {
  awaitReply,
  Beginnings,
  DelayQueue,
  Outages,
  replySettled,
  retryDelayMs,
  UnansweredDeliveries,
  WaitingQueues,
} from './queues.ts'
import { RateLimits, type SharedLimits } from './rate-limits.ts'
import { type RecordLog, Records } from './records.ts'
import { ShareLine } from './share-line.ts'
import { type Topic, Topology } from './topology.ts'
import { Uniques } from './uniques.ts'

export { POISON_DEATHS }

/** Reasons for a missing reply. */
const SUBSCRIBER_GONE = 'The subscriber is gone'
const EXPIRED = 'The request has expired before it was handled'
/** Deliveries of one share that wait in a process at most. */
const SHARE_MAX = 512
/** Interval between checks of deadlines, milliseconds. */
const SWEEP_MS = 100

export interface HubOptions {
  /** Maximum number of deliveries waiting or in flight, delayed ones and retries included. */
  maxQueue: number
  /** EVENT_BUS_MAX_DEAD_BYTES; its default when left out. */
  maxDeadBytes?: number
  /** EVENT_BUS_MAX_NAMES; its default when left out. */
  maxNames?: number
  /** True when the event store is too full for new work. Default: never. */
  isStoreCrowded?: () => boolean
  /** The limits that processes share. Default: this process alone counts. */
  sharedLimits?: SharedLimits
  /** The permits that processes share. Default: this process alone counts. */
  sharedPermits?: SharedPermits
  /** EVENT_BUS_WAIT_FOR_TOOLS. Default true. */
  waitsForTools?: boolean
  /** Called with true when there are suspects to try in a quarantine lane, and with false when none are left. */
  onQuarantine: (isWanted: boolean) => void
  /** A handler in the quarantine lane was abandoned: the next suspect needs a fresh lane. */
  onQuarantineUsed: () => void
  log: RecordLog
  clock: Clock
  chance: Chance
}

/**
 * The event hub of a process. It knows the subscribers and makes one delivery of an event for each consumer. A delivery waits for room,
 * goes to a thread, is answered, is tried again if it failed, and stays in the hub until it ends.
 */
export class Hub implements DeliverySink {
  readonly records: Records
  readonly deadLetters: MemoryDeadLetters
  readonly clock: Clock
  readonly trace = new DeliveryTrace()
  readonly counts = new DeliveryCounts()
  groups: GroupWatcher | null = null
  /** Called when subscribers have come, or the last of a group has gone. */
  onTopology: () => void = () => {}
  /** Events whose deliveries are told of; null: none. */
  #watched: { has(id: string): boolean } | null = null
  #tellChange: (change: DeliveryChange) => void = () => {}
  readonly #options: HubOptions
  readonly #topology: Topology
  readonly #budget: QueueBudget
  readonly #keys: KeyOrder
  readonly #waiting = new WaitingQueues()
  readonly #beginning = new Beginnings()
  readonly #uniques = new Uniques()
  readonly #delayed: DelayQueue
  readonly #unanswered: UnansweredDeliveries
  readonly #outages: Outages
  readonly #limits: RateLimits
  readonly #permits: Permits
  readonly #quarantine: Quarantine
  readonly #sweepTimer: Timer
  /** Time limits of open requests. */
  readonly #requestTimers = new Set<Timer>()
  readonly #closedTrees = new Cancels()
  #closed = false

  constructor(options: HubOptions) {
    this.#options = options
    this.clock = options.clock
    this.#topology = new Topology(options.maxNames)
    this.#budget = new QueueBudget(options.maxQueue)
    this.#delayed = new DelayQueue(options.clock)
    this.#unanswered = new UnansweredDeliveries(options.clock, (delivery) => this.#permits.back(delivery))
    this.#outages = new Outages(options.clock)
    this.#keys = new KeyOrder({
      begin: this.#enqueue,
      drop: (delivery) => this.#finish(delivery, SUBSCRIBER_GONE, false),
      consumerOf: ({ event, group }) => this.#topology.consumer(event, group),
    })
    this.records = new Records(options.log)
    this.deadLetters = new MemoryDeadLetters({
      ...options,
      blockedKeys: this.blockedKeys,
      hasConsumer: (event, group) => this.hasConsumer(event, group),
      deliver: (event, group) => {
        this.revive(event)
        this.take(event, [{ ...NEW_SHARE, group }])
      },
    })
    this.#permits = new Permits({
      clock: options.clock,
      shared: options.sharedPermits ?? null,
      roomOf,
      changed: () => this.subscribersChanged(),
    })
    this.#limits = new RateLimits({
      clock: options.clock,
      shared: options.sharedLimits ?? null,
      roomOf,
      changed: () => this.subscribersChanged(),
      freed: ({ event, group }, share) => this.groups?.freed?.(event, group, share),
      aside: (consumer, share) => this.#stepAside(consumer, share),
    })
    this.#quarantine = new Quarantine({
      send: (delivery, instance) => this.#send(delivery, instance),
      drop: (delivery) => this.#finish(delivery, SUBSCRIBER_GONE, false),
      onWanted: options.onQuarantine,
    })
    this.#sweepTimer = this.clock.every(SWEEP_MS, () => this.#sweep()).unref()
  }

  /** Pending deliveries: accepted and not finished. */
  get pending(): number {
    return this.#budget.pending
  }

  /** Pending deliveries waiting for a thread. */
  get queued(): number {
    return this.pending - this.#unanswered.count
  }

  /** Deliveries that could begin now and have not, and with `isWithRunning` those that run. False when all wait for a time, a key or an operator. */
  isBusy(isWithRunning: boolean): boolean {
    if (!this.#beginning.isEmpty || this.#limits.isAsking) return true
    if (!isWithRunning) return false
    const isReady = (delivery: Delivery): boolean =>
      !this.#isHeldBack(delivery.consumer) &&
      !this.#limits.waits(delivery) &&
      delivery.consumer.instances.some(({ isPaused }) => !isPaused)
    return this.#unanswered.count > 0 || !this.#quarantine.isEmpty || this.#waiting.someNext(isReady)
  }

  /** Pending deliveries in memory alone: they end with the process. */
  get unstored(): number {
    return this.#budget.unstored
  }

  /** Keys blocked by dead letters. */
  get blockedKeys(): BlockedKeys {
    return this.#keys.blocked
  }

  /** True when the queue is too full for new work. */
  get isCrowded(): boolean {
    return this.#budget.isCrowded || this.#options.isStoreCrowded?.() === true
  }

  // ── subscribers ───────────────────────────────────────────────────────────

  subscribe(event: string, group: string, options: SubscriberOptions, instance: SubscriberInstance): () => void {
    const consumer = this.#topology.addInstance(event, group, options, instance)
    // New code may have other limits.
    if (consumer.queue.waiting instanceof ShareLine) consumer.queue.waiting.allMayTryAgain()
    if (!instance.thread.isQuarantine) this.groups?.changed?.(event)
    this.onTopology()
    this.subscribersChanged()
    return () => {
      // The subscribers of a thread that ends are gone before it reports that.
      const isForGood = consumer.instances.includes(instance)
      if (this.#topology.removeInstance(consumer, instance)) this.#groupGone(consumer, isForGood)
    }
  }

  /** The last instance of a consumer has unsubscribed: its waiting and returning deliveries are dropped. */
  #groupGone(consumer: Consumer, isForGood = false): void {
    consumer.isGone = true
    this.onTopology()
    this.groups?.left(consumer.event, consumer.group, isForGood)
    this.groups?.changed?.(consumer.event)
    this.#dropWaiting(consumer)
  }

  #dropWaiting(consumer: Consumer): void {
    const beginning = this.#beginning.takeIf((delivery) => delivery.consumer === consumer)
    for (const delivery of [...beginning, ...this.#waiting.takeOf(consumer), ...this.#keys.takeHeld(consumer)])
      this.#finish(delivery, SUBSCRIBER_GONE, false)
    this.#quarantine.changed()
    this.#quarantine.pump()
  }

  /** A quarantine lane is ready, and all its subscribers are known. */
  quarantineUp(thread: SubscriberThread): void {
    this.#quarantine.threadUp(thread)
    this.#quarantine.pump()
  }

  /** Stops new deliveries to a thread. It may finish the ones it has. */
  threadLeaving(thread: SubscriberThread): void {
    this.#topology.removeThread(thread)
    this.#quarantine.threadGone(thread)
  }

  /**
   * A thread is gone: its instances leave, and its unanswered deliveries go to other threads, ahead of waiting ones.
   * @param unread deliveries it never started: they are no suspects
   * @param blackBox report of the crash; null when it was told to end
   */
  threadGone(thread: SubscriberThread, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    this.threadLeaving(thread)
    const deliveries = this.#unanswered.takeFrom(thread, unread)
    for (const delivery of deliveries) {
      if (unread.has(delivery.id)) this.#notBegun(delivery)
      else if (blackBox !== null && delivery.queue.instance === null) this.#died(delivery, blackBox)
    }
    this.#handOn(deliveries)
    this.#topology.forgetNames()
  }

  #died(delivery: Delivery, blackBox: BlackBox): void {
    delivery.deaths++
    delivery.blackBox = blackBox
    if (delivery.deaths < POISON_DEATHS) this.counts.of(delivery.consumer).lane_died++
    this.trace.note(delivery, {
      name: 'thread_death',
      deaths: delivery.deaths,
      plugin: delivery.instance?.plugin ?? null,
    })
  }

  /** Their thread has not begun them: it leaves, or their limit no longer lets them begin. */
  unbegun(ids: readonly number[]): void {
    const deliveries = ids.flatMap((id) => this.#unanswered.take(id, false) ?? [])
    for (const delivery of deliveries) this.#notBegun(delivery)
    this.#handOn(deliveries)
  }

  #notBegun(delivery: Delivery): void {
    this.#limits.unbegun(delivery)
    delivery.event.source?.unbegun?.(delivery)
    if (this.#watched !== null) this.#changed(delivery, null, null)
  }

  /** Their thread has them no more: they go to others, ahead of waiting ones. */
  #handOn(deliveries: readonly Delivery[]): void {
    const again: Delivery[] = []
    for (const delivery of deliveries) {
      this.#quarantine.ended(delivery)
      if (delivery.queue.instance !== null) {
        this.#finish(delivery, 'The thread that handled the request has died')
        continue
      }
      if (delivery.deaths >= POISON_DEATHS) this.#fail(delivery, poisonMessage(delivery), 'poison')
      else if (delivery.event.source?.leaving?.(delivery)) this.#leave(delivery)
      else {
        delivery.instance = null
        if (delivery.deaths > 0) this.#enqueue(delivery)
        else again.push(delivery)
      }
    }
    for (const delivery of again.reverse()) {
      if (delivery.consumer.isGone) this.#finish(delivery, SUBSCRIBER_GONE, false)
      else this.#waiting.unshift(delivery)
    }
    this.#pump()
  }

  /** Removes consumers no thread has any more: the code is new, or their last thread died and its successor lacks them. */
  dropVacant(): void {
    for (const consumer of this.#topology.vacant()) {
      const dropped = consumer.pending - this.#unanswered.countOf(consumer)
      if (dropped > 0) {
        const but = this.groups?.isKnown(consumer.event, consumer.group) ? ', except those in the event store' : ''
        this.#options.log('WARNING', `${consumer.group} is gone: ${dropped} events waiting for it were dropped${but}`)
      }
      this.#topology.drop(consumer)
      this.#groupGone(consumer)
    }
  }

  /** Unanswered deliveries of a thread, oldest first. */
  inFlightAt(thread: SubscriberThread, unread: ReadonlySet<number>): WorkInFlight[] {
    return this.#unanswered.worksAt(thread, unread)
  }

  /** Pauses or resumes the subscribers of a plugin. Their events wait meanwhile. */
  pausePlugin(plugin: string, isPaused: boolean): void {
    this.#topology.pause(plugin, isPaused)
    if (!isPaused) this.subscribersChanged()
  }

  /** The paused subscribers: they begin nothing, and what has begun goes on. */
  get pauses(): Pick<Pauses, 'has' | 'of' | 'list'> {
    return this.#topology.pauses
  }

  /** Exactly these subscribers are paused from now on. @returns the names of those for which that is new */
  setPauses(pauses: readonly Pause[]): Pick<Pause, 'event' | 'group'>[] {
    const changed = this.#topology.setPauses(pauses)
    if (changed.length > 0) this.subscribersChanged()
    return changed
  }

  /** Subscribers were added or resumed: waiting deliveries may have room. */
  subscribersChanged(): void {
    this.#quarantine.changed()
    this.#pump()
  }

  /** The code is new: plugins at their limit of event names start again from zero. */
  forgetNames(): void {
    this.#topology.forgetNames()
  }

  topology(): Record<string, TopologyEntry> {
    return this.#topology.entries()
  }

  /** Current consumers of an event. */
  consumersOf(event: string): readonly Consumer[] {
    return this.#topology.consumersOf(event)
  }

  /** Groups that subscribed after their plugins had booted. */
  temporaryGroupsOf(event: string): string[] {
    return this.#topology.consumersOf(event).flatMap(({ group, isTemporary }) => (isTemporary ? [group] : []))
  }

  /** Plugins with instances of a group. */
  pluginsOf(event: string, group: string): string[] {
    return this.#topology.consumer(event, group)?.instances.map(({ plugin }) => plugin) ?? []
  }

  hasConsumer(event: string, group: string): boolean {
    return this.#topology.consumer(event, group) !== undefined
  }

  // ── publishing ────────────────────────────────────────────────────────────

  /** Accepts an event. @returns its id, or with `unique` the id of the one that is there. @throws EVENT_BUS_FULL, EVENT_NAMES_LIMIT */
  publish(event: EventFrame, origin: SubscriberThread | null, requester: Requester | null = null): string {
    if (this.#closed) throw new HeddleError('EVENT_BUS_FULL', 'The service is shutting down and takes no more events')
    const consumers = this.#topology.consumersOf(event.event)
    if (event.unique !== null) return this.#publishUnique(event, event.unique, consumers, origin)
    this.#publishTo(consumers, event, origin, requester)
    return event.id
  }

  /** To those that have none like it. The others keep the one that they have, or its id. */
  #publishUnique(
    event: EventFrame,
    unique: UniqueEvent,
    all: readonly Consumer[],
    origin: SubscriberThread | null,
  ): string {
    const fresh = all.filter((consumer) => this.#uniques.of(consumer, unique) === undefined)
    const there = all.flatMap((consumer) => this.#uniques.of(consumer, unique) ?? [])
    // What a tree publishes late takes nobody's place.
    if (unique.replaces && !this.#isTakenBack(event)) for (const delivery of there) this.#replace(delivery, event)
    if (fresh.length === 0 && there.length > 0) return there[0]!.event.id
    this.#publishTo(fresh, event, origin, null)
    return event.id
  }

  /** @param by has other payload and another time. @throws EVENT_OPTIONS_INVALID, EVENT_BUS_FULL */
  #replace(delivery: Delivery, by: EventFrame): void {
    const { consumer, event } = delivery
    if (event.key !== by.key) throw otherKey(by)
    this.#checkRoom(by, [consumer])
    this.cancel((each) => each === delivery)
    this.#take(hubEventOf({ ...by, id: event.id }, this.#expiryOf(by), null, null), [consumer], null)
  }

  #publishTo(
    consumers: readonly Consumer[],
    event: EventFrame,
    origin: SubscriberThread | null,
    requester: Requester | null,
  ): void {
    if (consumers.length > 0) this.#checkRoom(event, consumers)
    const topic = this.#topology.emitting(event.event, event.emitter)
    topic.ownCount++
    this.#fired(topic, event, origin)
    if (consumers.length === 0) return
    const expiresMs = this.#expiryOf(event)
    // One more until all deliveries have been accepted: there may be none.
    if (requester !== null) requester.open++
    const isTakenBack = this.#isTakenBack(event)
    if (!isTakenBack) this.#take(hubEventOf(event, expiresMs, null, requester), consumers, null)
    if (requester !== null) replySettled(requester, isTakenBack ? CANCELLED : SUBSCRIBER_GONE)
  }

  #expiryOf({ ttlMs, delayMs }: EventFrame): number {
    return ttlMs === 0 ? 0 : this.clock.nowMs() + delayMs + ttlMs
  }

  /**
   * Accepts an event of the event store or a broker. It is never refused: the caller has checked for room.
   * @param shares its remaining deliveries; null: all
   * @returns the number of its deliveries here
   */
  take(event: HubEvent, shares: readonly Share[] | null): number {
    // The broker gives it to another process.
    if (this.#closed && event.source?.isBroker) return 0
    if (shares?.length === 1) {
      const [share] = shares
      const consumer = this.#topology.consumer(event.event, share!.group)
      if (consumer === undefined) return 0
      if (consumer.broadcast) return this.#take(event, [consumer], shares)
      return this.#deliver(consumer.queue, event, share!)
    }
    return this.#take(event, this.#topology.consumersOf(event.event), shares)
  }

  #take(event: HubEvent, consumers: readonly Consumer[], shares: readonly Share[] | null): number {
    if (shares === null && consumers.length === 1 && !consumers[0]!.broadcast)
      return this.#deliver(consumers[0]!.queue, event, null)
    const taken: Delivery[] = []
    for (const consumer of consumers) {
      const share = shares === null ? null : shares.find(({ group }) => group === consumer.group)
      if (share === undefined) continue
      for (const queue of consumer.queuesFor(share?.isForOne === true)) taken.push(deliveryOf(queue, event, share))
    }
    for (const delivery of taken) this.#accept(delivery)
    // After all have been accepted: the first may end at once.
    for (const delivery of taken) this.#begin(delivery)
    return taken.length
  }

  #deliver(queue: DeliveryQueue, event: HubEvent, share: Share | null): 1 {
    const delivery = deliveryOf(queue, event, share)
    this.#accept(delivery)
    this.#begin(delivery)
    return 1
  }

  #checkRoom({ event, key, payload, parentId, requestId }: EventFrame, consumers: readonly Consumer[]): void {
    const { held } = this.#keys
    const budget = this.#budget
    budget.check(consumers, payload.length, parentId === null && requestId === null)
    if (held.deliveries === 0 || key === null) return
    const blocked = consumers.filter(({ group }) => this.blockedKeys.find({ event, group, key }) !== undefined).length
    if (blocked > 0) budget.checkHeld(held, blocked, payload.length)
  }

  /**
   * Records an event taken by a broker, and tells the listeners. An event name over the limit is traced without a topic.
   * @param isOwn false for an event that another process has published
   */
  record(event: EventFrame, origin: SubscriberThread | null, isOwn = true): void {
    let topic: Topic
    try {
      topic = this.#topology.emitting(event.event, event.emitter)
    } catch {
      // Over this process's name limit, but the publishing process accepted it.
      return this.records.published(event, this.#topology.subscribersOf(event.event), origin)
    }
    if (isOwn) topic.ownCount++
    this.#fired(topic, event, origin)
  }

  #fired(topic: Topic, event: EventFrame, origin: SubscriberThread | null): void {
    topic.fireCount++
    this.records.published(event, topic.subscribers, origin)
  }

  /** Publishes and resolves with the first object a subscriber returns, as JSON. */
  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    if (!this.#topology.hasConsumer(event.event)) {
      return Promise.reject(new HeddleError('EVENT_BUS_NO_SUBSCRIBER', `Nobody subscribes to ${event.event}`))
    }
    return awaitReply(this.clock, event.event, timeoutMs, this.#requestTimers, (requester) =>
      this.publish(event, origin, requester),
    )
  }

  /** Number of events of a name that this process has published. */
  publishedOf(event: string): number {
    return this.#topology.publishedOf(event)
  }

  /** All consumers, with their pending and ended deliveries, for sharing work with other processes. */
  workloads(): Iterable<Consumer> {
    return this.#topology.consumers()
  }

  // ── to a thread ───────────────────────────────────────────────────────────

  /** Counts the delivery as pending. */
  #accept(delivery: Delivery): void {
    this.#budget.take(delivery)
    if (delivery.event.unique !== null) this.#uniques.accepted(delivery)
    delivery.event.source?.accepted?.(delivery)
  }

  #begin(delivery: Delivery): void {
    const { source, delayMs } = delivery.event
    // The event store and the brokers keep delayed events until they are due.
    if (source === null && delayMs > 0) this.#delayed.delayFirst(delivery, delayMs, this.#admit)
    else this.#keys.admit(delivery)
  }

  readonly #admit = (delivery: Delivery): void => this.#keys.admit(delivery)

  readonly #enqueue = (delivery: Delivery): void => {
    const { consumer, queue, event } = delivery
    if (consumer.isGone) return this.#finish(delivery, SUBSCRIBER_GONE, false)
    // The delivery stays in the store, perhaps behind an earlier one of its key.
    if (this.#delayed.isDraining && event.source?.isBroker === false)
      return this.#finish(delivery, SUBSCRIBER_GONE, false)
    // It waited for its key, so that the rest of the key continues behind its dead letter.
    if (delivery.deaths >= POISON_DEATHS) return this.#fail(delivery, poisonMessage(delivery), 'poison')
    if (delivery.dueMs !== 0) return this.#enqueueLater(delivery)
    if (delivery.deaths > 0)
      return mustBegin(delivery) ? void this.#beginFirst(delivery) : this.#quarantine.add(delivery)
    become(delivery, 'ready')
    if (delivery.share !== '' || queue.takesTurns) return this.#takesTurn(delivery)
    if (queue.waiting.size === 0 && this.#dispatch(delivery)) return
    if (this.#delayed.isDraining && isUntried(delivery)) return this.#finish(delivery, SUBSCRIBER_GONE, false)
    this.#waiting.push(delivery)
  }

  /** Its limit is used up for some time: what is stored waits in its store, and leaves room for others. */
  #stepAside({ queue }: Consumer, share: string): void {
    // Those behind it of its key would go first.
    const isAlone = ({ event: { key } }: Delivery): boolean => key === null || (queue.keyed.get(key)?.size ?? 0) === 0
    const mayGo = (delivery: Delivery): boolean =>
      delivery.share === share && delivery.event.source !== null && !delivery.isBegun && isAlone(delivery)
    for (const delivery of queue.waiting.takeIf(mayGo)) this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  #takesTurn(delivery: Delivery): void {
    const { queue, consumer } = delivery
    if (this.#delayed.isDraining && isUntried(delivery)) return this.#finish(delivery, SUBSCRIBER_GONE, false)
    if (!queue.takesTurns)
      queue.takeTurns((share) => this.#limits.mayTry(consumer, share) && this.#permits.mayTry(consumer, share))
    this.#waiting.push(delivery)
    this.#waiting.offer(queue, this.#dispatch)
  }

  /** It is first of its key before it is due: the rest of the key waits with it. */
  #enqueueLater(delivery: Delivery): void {
    const delayMs = Math.max(0, delivery.dueMs - this.clock.nowMs())
    delivery.dueMs = 0
    if (!this.#delayed.delayRetry(delivery, delayMs, this.#enqueue)) this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  /** Sends a delivery to a thread. False if none has room. */
  readonly #dispatch = (delivery: Delivery): boolean => {
    const { consumer, event } = delivery
    const only = delivery.queue.instance
    if (only !== null && !consumer.instances.includes(only)) {
      // The instance is gone: no other may get this delivery, and none may wait for it.
      this.#finish(delivery, 'The thread that was to handle the request is gone')
      return true
    }
    if (!delivery.queue.hasRoom || this.#isHeldBack(consumer)) return false
    const instance = only ?? consumer.pickInstance()
    if (instance === null || instance.isPaused || !instance.thread.hasRoom) return false
    // A delivery started in time is finished, retries included. One that may be replaced has its time when it begins.
    if (event.expiresMs !== 0 && !delivery.isBegun && !mustBegin(delivery) && event.expiresMs < this.clock.nowMs()) {
      this.#finish(delivery, EXPIRED)
      return true
    }
    if (!mustBegin(delivery)) return this.#send(delivery, instance)
    if (!this.#beginning.hasRoom || !this.#permits.mayTry(consumer, delivery.share)) return false
    // Until its limit lets it begin, it may be replaced.
    if (consumer.limits.length > 0 && !this.#limits.take(delivery)) return false
    delivery.isLet = consumer.limits.length > 0
    void this.#beginFirst(delivery)
    return true
  }

  async #beginFirst(delivery: Delivery): Promise<void> {
    this.#beginning.add(delivery)
    const now = await delivery.event.source!.begin!(delivery)
    if (this.#beginning.take(delivery)) {
      if (now === null) this.#finish(delivery, SUBSCRIBER_GONE, false)
      else this.#replaced(delivery, now)
    }
    this.#pump()
  }

  /** It is begun, perhaps with another payload than it was taken with. */
  #replaced(delivery: Delivery, now: EventFrame): void {
    const { event, deaths } = delivery
    this.#budget.release(delivery)
    Object.assign(event, now, { producer: now.trace })
    this.#budget.take(delivery)
    if (this.#isTakenBack(event)) return this.#finish(delivery, CANCELLED)
    if (deaths > 0) return this.#quarantine.add(delivery)
    this.#waiting.unshift(delivery)
  }

  /** False if the thread did not take it. */
  #send(delivery: Delivery, instance: SubscriberInstance): boolean {
    const { event } = delivery
    if (event.source?.mayBegin?.(delivery) === false) return false
    const { consumer } = delivery
    const isLimited = consumer.limits.length > 0 && !delivery.isLet
    if (consumer.permits !== null && !this.#permits.take(delivery)) return false
    if (isLimited && !this.#limits.take(delivery)) {
      this.#permits.back(delivery)
      return false
    }
    delivery.isLet = false
    const id = this.#unanswered.nextId()
    this.trace.sending(delivery)
    event.subscriber = instance.subscriberIndex
    event.beginBy = delivery.beginBy
    event.attempt = event.requester === null ? delivery.attempt : delivery.attempt | WANTS_REPLY
    if (!instance.thread.send(id, event)) {
      if (isLimited) this.#limits.back(delivery)
      this.#permits.back(delivery)
      return false
    }
    event.source?.begun?.(delivery)
    this.#unanswered.add(delivery, id, instance)
    if (this.#watched !== null) this.#changed(delivery, null, null)
    if (delivery.consumer.outage !== null) this.#outages.tried(delivery.consumer)
    return true
  }

  /** A thread has room again, or has just started. @param answered a delivery that was handled, in a thread */
  #pump(answered?: { readonly queue: DeliveryQueue; readonly thread: SubscriberThread }): void {
    // Suspects first: with a low concurrency limit the waiting deliveries would leave no place for them.
    this.#quarantine.pump()
    if (!this.#waiting.isEmpty) this.#waiting.pump(this.#dispatch, answered)
  }

  // ── answers of the threads ────────────────────────────────────────────────

  delivered(deliveryId: number): void {
    const delivery = this.#answered(deliveryId)
    if (delivery !== undefined) {
      const { requester } = delivery.event
      if (requester !== null) requester.onlyFailures = false
      // The end of an outage makes room for all others of the consumer, too.
      const isOutage = delivery.consumer.outage !== null
      const { queue, instance } = delivery
      this.#toolIsThere(delivery)
      this.#finish(delivery, null)
      if (!isOutage && instance !== null) return this.#pump({ queue, thread: instance.thread })
    }
    this.#pump()
  }

  /** The delivery was handled, and the subscriber returned an object to a waiting publisher. */
  reply(deliveryId: number, reply: string): void {
    this.#unanswered.get(deliveryId)?.event.requester?.reply(reply)
    this.delivered(deliveryId)
  }

  /** The process stops and will not wait: running handlers should end. */
  stopping(): void {
    this.#unanswered.lose('stopped', () => true)
  }

  /** Another process has rows of the store: their running handlers should end. @param isMoved true for the number of such a row */
  moved(isMoved: (seq: number) => boolean): void {
    this.#unanswered.lose('moved', ({ event }) => event.seq > 0 && isMoved(event.seq))
  }

  /** Its handler still works: its time begins anew. */
  heartbeat(deliveryId: number): void {
    this.#unanswered.begin(deliveryId)
  }

  failed(deliveryId: number, error: WireError): void {
    const delivery = this.#answered(deliveryId)
    if (delivery !== undefined) {
      if (error.away) this.#awaitTool(delivery, error.message)
      else if (error.later !== undefined) {
        this.#toolIsThere(delivery)
        this.#putOff(delivery, error.message, error.later)
      } else {
        this.#toolIsThere(delivery)
        this.#fail(delivery, error.message, error.unrecoverable ? 'unrecoverable' : 'once')
      }
    }
    this.#pump()
  }

  #toolIsThere({ consumer }: Delivery): void {
    if (consumer.outage !== null) this.#outages.over(consumer)
  }

  /** A tool is unavailable: the delivery waits ahead of the others, and the attempt does not count. */
  #awaitTool(delivery: Delivery, error: string): void {
    const { consumer, event } = delivery
    this.#outages.began(consumer)
    delivery.instance = null
    delivery.error = error
    this.counts.of(consumer).unavailable++
    this.trace.note(delivery, { name: 'tool_away' })
    if (event.source?.leaving?.(delivery)) return this.#leave(delivery)
    const isReturned = this.#delayed.isDraining && event.source !== null
    if (consumer.isGone || isReturned) this.#finish(delivery, SUBSCRIBER_GONE, false)
    else if (delivery.deaths > 0) this.#quarantine.add(delivery)
    else this.#waiting.unshift(delivery)
  }

  #answered(deliveryId: number): Delivery | undefined {
    const delivery = this.#unanswered.take(deliveryId)
    if (delivery === undefined) return undefined
    if (delivery.deaths > 0) this.#quarantine.ended(delivery)
    if (delivery.consumer.isBounded) this.#quarantine.changed()
    return delivery
  }

  /**
   * @param fault why it gives no reply; null if the subscriber handled it
   * @param isDone false when its subscriber has left this process
   */
  #finish(delivery: Delivery, fault: string | null, isDone = true): void {
    const { requester, source } = delivery.event
    if (isDone) delivery.consumer.ended++
    if (isDone || source === null)
      this.counts.of(delivery.consumer)[outcomeOf(delivery, isDone ? fault : SUBSCRIBER_GONE)]++
    if (this.#watched !== null && isDone) this.#changed(delivery, shownOutcome(delivery, fault), fault)
    if (delivery.span !== null) this.trace.ended(delivery, isDone)
    become(delivery, 'ended')
    this.#budget.release(delivery)
    if (delivery.event.unique !== null) this.#uniques.ended(delivery)
    // Another process may still reply to a delivery returned to its broker.
    if (requester !== null && (isDone || source === null)) replySettled(requester, fault)
    source?.ended(delivery, isDone)
    this.deadLetters.replayEnded(delivery.event, fault, null)
    this.#keys.finished(delivery)
  }

  /** Schedules a retry, or makes a dead letter. */
  #fail(delivery: Delivery, error: string, failure: Failure): void {
    const { consumer, event, attempt } = delivery
    if (failure === 'once' && attempt <= consumer.retries) {
      delivery.attempt++
      delivery.instance = null
      delivery.error = error
      this.counts.of(consumer).failed++
      const delayMs = retryDelayMs(attempt, consumer.backoffMs, this.#options.chance.fraction)
      this.trace.note(delivery, { name: 'retry', attempt: delivery.attempt, delayMs })
      return this.#tryAgain(delivery, delayMs)
    }
    // The current attempt ended with its thread, as earlier ones did.
    const attempts = failure === 'poison' ? attempt - 1 + delivery.deaths : attempt
    become(delivery, 'dead')
    this.trace.givenUp(delivery, attempts)
    const failed: FailedDelivery = {
      event,
      group: consumer.group,
      subscriber: delivery.instance?.plugin ?? consumer.instances[0]?.plugin ?? consumer.group,
      error,
      attempts,
      blackBox: failure === 'poison' ? delivery.blackBox : null,
      // Nothing waits for a departed subscriber, and a new one of its name starts a new order.
      parks: consumer.parks && !consumer.isGone && event.key !== null && delivery.queue.instance === null,
      trace: this.trace.scopeOf(delivery),
    }
    this.records.failed(failed)
    if (event.source === null) {
      this.deadLetters.add(failed)
      this.#finish(delivery, error)
    }
    // Acknowledged only once the dead letter is stored.
    else void event.source.storeDeadLetter(delivery, failed).then(() => this.#finish(delivery, error))
  }

  /** The delivery waits for its next attempt in the event store. */
  #leave(delivery: Delivery): void {
    if (delivery.span !== null) this.trace.ended(delivery, false)
    become(delivery, 'ended')
    this.#budget.release(delivery)
    this.#keys.finished(delivery)
  }

  /** Its handler wants it later: no attempt is counted. */
  #putOff(delivery: Delivery, error: string, { ms, all }: { ms: number; all: boolean }): void {
    const { consumer } = delivery
    delivery.instance = null
    delivery.error = error
    this.counts.of(consumer).put_off++
    this.trace.note(delivery, { name: 'put_off', delayMs: ms })
    if (all) {
      this.holdBack(consumer.event, consumer.group, ms)
      this.groups?.heldBack?.(consumer.event, consumer.group, ms)
    }
    this.#tryAgain(delivery, ms)
  }

  /** A subscriber gets nothing for some time. */
  holdBack(event: string, group: string, ms: number): void {
    const consumer = this.#topology.consumer(event, group)
    if (consumer !== undefined) consumer.heldUntilMs = Math.max(consumer.heldUntilMs, this.clock.appMs() + ms)
  }

  /** True for a subscriber that asks whose an event is. */
  areTurnsTaken(event: string, group: string): boolean {
    return this.#topology.consumer(event, group)?.isSharing === true
  }

  /** How many deliveries of a share may wait here: none while its limit is used up. */
  roomOfShare(event: string, group: string, share: string): number {
    const consumer = this.#topology.consumer(event, group)
    if (consumer === undefined || !this.#limits.mayTry(consumer, share)) return 0
    const { limits, permits } = consumer
    const most = limits.flatMap(({ max, by }) => (by === null ? [] : [max]))
    // Some wait for those that run.
    if (permits !== null && permits.by !== null) most.push(2 * permits.max)
    return Math.min(SHARE_MAX, ...most)
  }

  #isHeldBack({ heldUntilMs }: Consumer): boolean {
    return heldUntilMs !== 0 && heldUntilMs > this.clock.appMs()
  }

  #tryAgain(delivery: Delivery, delayMs: number): void {
    const { event } = delivery
    const dueMs = Math.ceil(this.clock.nowMs() + delayMs)
    const mayLeave = event.key === null && delivery.queue.instance === null && delivery.deaths === 0
    if (event.source?.retrying?.(delivery, dueMs, mayLeave)) return this.#leave(delivery)
    if (!this.#delayed.delayRetry(delivery, delayMs, this.#enqueue)) this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  #sweep(): void {
    // One by one: abandoning an attempt makes room for another.
    for (const id of this.#unanswered.late(this.clock.steadyMs())) {
      const delivery = this.#abandon(id, 'timeout')
      if (delivery === undefined) continue
      const error = `The subscriber did not finish within ${delivery.consumer.timeoutMs} ms`
      if (delivery.event.source?.isAway && this.#options.waitsForTools !== false) this.#awaitTool(delivery, error)
      else this.#fail(delivery, error, 'once')
    }
    this.#outages.look()
    // No event reports that a lane is ready or its loop runs again.
    this.subscribersChanged()
  }

  // ── end ───────────────────────────────────────────────────────────────────

  /**
   * Prepares the end of the process. Deliveries no thread has had or between two attempts go back to their broker, and failing ones follow from
   * then on. Deliveries of the event store stay there. Deliveries in memory behind dead letters are dropped.
   */
  returnDelayed(): void {
    const retries = this.#delayed.takeForHandover()
    const dropped = this.#keys.end()
    if (dropped > 0) {
      const message = `${dropped} events behind dead letters in memory are lost with this process`
      this.#options.log('WARNING', message)
    }
    const mayGo = (delivery: Delivery): boolean => isUntried(delivery) || isAwaited(delivery)
    for (const delivery of [...retries, ...this.#beginning.takeIf(mayGo), ...this.#waiting.takeIf(mayGo)])
      this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  /**
   * Ends deliveries of stored events no thread has at present: they stay in the store.
   * @param isWanted called with the position of an event
   */
  takeBack(isWanted: (position: number) => boolean): void {
    const isTaken = ({ event, queue }: Delivery): boolean =>
      event.source !== null && event.seq > 0 && queue.instance === null && isWanted(event.seq)
    const behind = this.#topology.consumers().flatMap(({ queue }) => this.#keys.takeBehind(queue, isTaken))
    for (const delivery of behind) this.#endBehind(delivery, false)
    for (const delivery of [
      ...this.#delayed.takeIf(isTaken),
      ...this.#beginning.takeIf(isTaken),
      ...this.#waiting.takeIf(isTaken),
      ...this.#quarantine.takeIf(isTaken),
    ])
      this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  /** Ends the deliveries that wait for this one because of its key: they stay in the store. */
  takeBehind(delivery: Delivery): void {
    const isStored = ({ event }: Delivery): boolean => event.source !== null
    for (const behind of this.#keys.takeBehindKey(delivery, isStored)) this.#endBehind(behind, false)
  }

  /** It has not begun, and its key goes on without it. @param isDone false when it stays in its store */
  #endBehind(delivery: Delivery, isDone: boolean): void {
    const { requester, source } = delivery.event
    become(delivery, 'ended')
    this.#budget.release(delivery)
    if (delivery.event.unique !== null) this.#uniques.ended(delivery)
    if (isDone || source === null) this.counts.of(delivery.consumer)[isDone ? 'cancelled' : 'lost']++
    if (requester !== null && isDone) replySettled(requester, CANCELLED)
    if (this.#watched !== null && isDone) this.#changed(delivery, 'cancelled', CANCELLED)
    source?.ended(delivery, isDone)
  }

  // ── watching ──────────────────────────────────────────────────────────────

  /** Tells of deliveries of these events that begin or end. @param events null: of none */
  watch(events: { has(id: string): boolean } | null, tell: (change: DeliveryChange) => void = () => {}): void {
    this.#watched = events
    this.#tellChange = tell
  }

  #changed({ event, consumer, attempt }: Delivery, outcome: DeliveryChange['outcome'], error: string | null): void {
    if (this.#watched?.has(event.id))
      this.#tellChange({ id: event.id, subscriber: consumer.group, outcome, attempt, error })
  }

  /** All deliveries that have not ended, except those whose dead letters are being stored. */
  *deliveries(): Iterable<Delivery> {
    for (const each of [this.#unanswered, this.#beginning, this.#quarantine]) yield* each.items()
    for (const consumer of this.#topology.consumers())
      for (const { waiting, keyed } of consumer.queues()) {
        yield* waiting
        for (const behind of keyed.values()) yield* behind
      }
    for (const held of this.blockedKeys.allHeld) yield* held
    yield* this.#delayed.items()
  }

  /** The deliveries of some events that have not ended, by event and subscriber. */
  deliveriesOf(ids: ReadonlySet<string>): Map<string, Map<string, { isRunning: boolean; attempt: number }>> {
    const found = new Map<string, Map<string, { isRunning: boolean; attempt: number }>>()
    for (const delivery of this.deliveries()) {
      const { event, consumer, attempt, state } = delivery
      if (!ids.has(event.id)) continue
      const of = found.get(event.id) ?? new Map<string, { isRunning: boolean; attempt: number }>()
      found.set(event.id, of.set(consumer.group, { isRunning: state === 'sent', attempt }))
    }
    return found
  }

  // ── taking back ───────────────────────────────────────────────────────────

  /** Takes events back that are in memory alone, and whatever they cause from now on. */
  cancelMeant(what: CancelTarget): Cancelled {
    if (isTree(what)) this.closeTree(what)
    return this.cancel(({ event }) => isMeant(what, event))
  }

  /** For some time, nothing of a tree is published in memory. */
  closeTree(what: CancelTarget): void {
    this.#closedTrees.add(what, Number.POSITIVE_INFINITY, this.clock.steadyMs() + CANCEL_KEPT_MS)
  }

  /** A dead letter of the event is replayed: the trees closed so far do not hold it up. */
  revive(event: Revived): void {
    this.#closedTrees.revive(event)
  }

  #isTakenBack(event: EventFrame): boolean {
    return !this.#closedTrees.isEmpty && this.#closedTrees.has(event, 0, this.clock.steadyMs())
  }

  /**
   * Takes deliveries back: those that wait have ended, and the handlers of those that run are told; what they still do does not count.
   * Those that another event may have replaced go back to their store, which knows whether they are still meant: they are not counted.
   * @returns how many waited, and how many ran
   */
  cancel(isWanted: (delivery: Delivery) => boolean): Cancelled {
    return { waiting: this.cancelWaiting(isWanted), running: this.cancelRunning(isWanted) }
  }

  cancelWaiting(isWanted: (delivery: Delivery) => boolean): number {
    const behind = this.#topology
      .consumers()
      .flatMap((consumer) => consumer.queues().flatMap((queue) => this.#keys.takeBehind(queue, isWanted)))
    const blocked = this.#keys.takeBlocked(isWanted)
    const [heldByStore, held] = partition([...behind, ...blocked], mustBegin)
    for (const delivery of heldByStore) this.#endBehind(delivery, false)
    for (const delivery of held) this.#endBehind(delivery, true)
    const [returned, waiting] = partition(
      [
        ...this.#delayed.takeIf(isWanted),
        ...this.#beginning.takeIf(isWanted),
        ...this.#waiting.takeIf(isWanted),
        ...this.#quarantine.takeIf(isWanted),
      ],
      mustBegin,
    )
    for (const delivery of returned) this.#finish(delivery, SUBSCRIBER_GONE, false)
    for (const delivery of waiting) this.#finish(delivery, CANCELLED)
    this.#pump()
    return held.length + waiting.length
  }

  cancelRunning(isWanted: (delivery: Delivery) => boolean): number {
    const running = this.#unanswered.matching(isWanted)
    for (const id of running) {
      const delivery = this.#abandon(id, 'cancelled')
      if (delivery === undefined) continue
      this.trace.note(delivery, { name: 'cancelled' })
      this.#finish(delivery, CANCELLED)
    }
    this.#pump()
    return running.length
  }

  /** Deliveries that wait for their time do so no longer. @returns how many */
  runNow(isWanted: (delivery: Delivery) => boolean): number {
    const taken = this.#delayed.takeIf(isWanted)
    for (const delivery of taken)
      if (delivery.event.source === null && !delivery.isBegun) this.#admit(delivery)
      else this.#enqueue(delivery)
    return taken.length
  }

  /** Gives up a delivery that a thread has. Its handler is told. */
  #abandon(id: number, reason: LostReason): Delivery | undefined {
    const delivery = this.#unanswered.take(id)
    if (delivery === undefined) return undefined
    const { thread } = delivery.instance!
    thread.abandon(delivery.id, reason)
    this.#quarantine.ended(delivery)
    if (thread.isQuarantine) this.#options.onQuarantineUsed()
    return delivery
  }

  /** Takes no more events. Deliveries in flight may still be answered. */
  close(): void {
    this.#closed = true
    for (const timer of this.#requestTimers) this.clock.cancel(timer)
    this.clock.cancel(this.#sweepTimer)
    this.#delayed.close()
    this.#limits.close()
    this.#permits.close()
    this.trace.close()
  }
}

/** How many deliveries could begin now: those that wait, as far as there is room. At least one: that which asks. */
function roomOf({ queue, concurrency, instances }: Consumer): number {
  const room = instances.reduce((sum, { thread, isPaused }) => sum + (isPaused ? 0 : thread.room), 0)
  return Math.max(1, Math.min(queue.waiting.size, concurrency - queue.inFlight, room))
}

/** @param fault why it has not been handled; null: it has */
function outcomeOf({ state }: Delivery, fault: string | null): 'done' | 'dead' | 'cancelled' | 'expired' | 'lost' {
  if (state === 'dead') return 'dead'
  if (fault === null) return 'done'
  return fault === CANCELLED ? 'cancelled' : fault === EXPIRED ? 'expired' : 'lost'
}

/** Who follows an event is told no more of what was not handled. */
function shownOutcome(delivery: Delivery, fault: string | null): 'done' | 'dead' | 'cancelled' {
  const outcome = outcomeOf(delivery, fault)
  return outcome === 'done' || outcome === 'dead' ? outcome : 'cancelled'
}

function partition<T>(all: readonly T[], isFirst: (each: T) => boolean): [T[], T[]] {
  const first: T[] = []
  const rest: T[] = []
  for (const each of all) (isFirst(each) ? first : rest).push(each)
  return [first, rest]
}

/** It is alone while it waits: its store begins it. */
const mustBegin = ({ event, isBegun }: Delivery): boolean =>
  event.unique?.while === 'waiting' && event.source?.begin !== undefined && !isBegun

/** A stored delivery no thread here can handle now. */
const isAwaited = ({ event, consumer }: Delivery): boolean =>
  event.source !== null &&
  (consumer.outage !== null ||
    consumer.isPaused ||
    consumer.limits.length > 0 ||
    consumer.permits !== null ||
    consumer.heldUntilMs > 0)

/** A stored delivery another process may take as new. */
const isUntried = ({ event, isBegun }: Delivery): boolean => event.source !== null && !isBegun
