// The life of an event in this process: publisher → hub → thread → acknowledgement.
import type { SubscribeOptions, TopologyEntry } from '../../contracts/event-bus.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { HeddleError, type WireError } from '../../core/errors/catalogue.ts'
import type { Chance, Clock, Timer } from '../../core/schedule/clock.ts'
import type { DeliverySink } from '../../runtime/events/event-server.ts'
import { type EventFrame, WANTS_REPLY } from '../../transport/frames/event-frame.ts'
import {
  type Consumer,
  type Delivery,
  type DeliveryQueue,
  deliveryOf,
  type FailedDelivery,
  type Failure,
  type GroupWatcher,
  type HubEvent,
  hubEventOf,
  type Requester,
  type Share,
  type SubscriberInstance,
  type SubscriberThread,
} from './consumer.ts'
import { MemoryDeadLetters } from './dead-letters.ts'
import { DeliveryTrace } from './delivery-trace.ts'
import { KeyOrder, type ParkedKeys } from './key-order.ts'
import { POISON_DEATHS, poisonMessage, Quarantine } from './quarantine.ts'
import { QueueBudget } from './queue-budget.ts'
import {
  awaitReply,
  DelayQueue,
  Outages,
  replySettled,
  retryDelayMs,
  UnansweredDeliveries,
  WaitingQueues,
} from './queues.ts'
import { type RecordLog, Records } from './records.ts'
import { type Topic, Topology } from './topology.ts'

export { POISON_DEATHS }

/** Why there is no reply. */
const SUBSCRIBER_GONE = 'The subscriber is gone'
/** How often deadlines are checked, milliseconds. */
const SWEEP_MS = 100

export interface HubOptions {
  /** Deliveries that wait or are under way at most, delayed ones and retries included. */
  maxQueue: number
  /** EVENT_BUS_MAX_DEAD_BYTES; its default when left out. */
  maxDeadBytes?: number
  /** EVENT_BUS_MAX_NAMES; its default when left out. */
  maxNames?: number
  /** True when the durable log is so full that nothing new should be begun; never when left out. */
  isLogCrowded?: () => boolean
  /** Told whether a quarantine lane is needed: there are deliveries that a thread died of, or no more. */
  onQuarantine: (isWanted: boolean) => void
  /** A handler in the quarantine lane was given up: the next suspect needs a fresh lane. */
  onQuarantineUsed: () => void
  log: RecordLog
  clock: Clock
  chance: Chance
}

/**
 * The event hub of a process. It knows who subscribes, makes an event a delivery for each consumer, and keeps each delivery until it ends: it waits
 * for room, goes to a thread, is answered, and is tried again when it failed.
 */
export class Hub implements DeliverySink {
  readonly records: Records
  readonly deadLetters: MemoryDeadLetters
  readonly clock: Clock
  readonly trace = new DeliveryTrace()
  groups: GroupWatcher | null = null
  /** Told when subscribers have come, or the last of a group has gone. */
  onTopology: () => void = () => {}
  readonly #options: HubOptions
  readonly #topology: Topology
  readonly #budget: QueueBudget
  readonly #keys: KeyOrder
  readonly #waiting = new WaitingQueues()
  readonly #delayed: DelayQueue
  readonly #unanswered: UnansweredDeliveries
  readonly #outages: Outages
  readonly #quarantine: Quarantine
  readonly #sweepTimer: Timer
  /** Time limits of requests that wait for a reply. */
  readonly #requestTimers = new Set<Timer>()
  #closed = false

  constructor(options: HubOptions) {
    this.#options = options
    this.clock = options.clock
    this.#topology = new Topology(options.maxNames)
    this.#budget = new QueueBudget(options.maxQueue)
    this.#delayed = new DelayQueue(options.clock)
    this.#unanswered = new UnansweredDeliveries(options.clock)
    this.#outages = new Outages(options.clock)
    this.#keys = new KeyOrder({
      begin: this.#enqueue,
      drop: (delivery) => this.#finish(delivery, SUBSCRIBER_GONE, false),
      consumerOf: ({ event, group }) => this.#topology.consumer(event, group),
    })
    this.records = new Records(options.log)
    this.deadLetters = new MemoryDeadLetters({
      ...options,
      parked: this.parked,
      hasConsumer: (event, group) => this.hasConsumer(event, group),
      deliver: (event, group) => this.#start(this.#topology.consumer(event.event, group)!.queue, event),
    })
    this.#quarantine = new Quarantine({
      send: (delivery, instance) => this.#send(delivery, instance),
      drop: (delivery) => this.#finish(delivery, SUBSCRIBER_GONE, false),
      onWanted: options.onQuarantine,
    })
    this.#sweepTimer = this.clock.every(SWEEP_MS, () => this.#sweep()).unref()
  }

  /** Deliveries that are accepted and not finished. */
  get pending(): number {
    return this.#budget.pending
  }

  /** Those of them that no thread has. */
  get queued(): number {
    return this.pending - this.#unanswered.count
  }

  /** Those of them that end with the process: neither a broker nor the log has them. */
  get unstored(): number {
    return this.#budget.unstored
  }

  /** Keys that wait behind dead letters. */
  get parked(): ParkedKeys {
    return this.#keys.parked
  }

  /** True when the queue is so full that nothing new should be begun. */
  get isCrowded(): boolean {
    return this.#budget.isCrowded || this.#options.isLogCrowded?.() === true
  }

  // ── subscribers ───────────────────────────────────────────────────────────

  subscribe(event: string, group: string, options: SubscribeOptions, instance: SubscriberInstance): () => void {
    const consumer = this.#topology.addInstance(event, group, options, instance)
    const { isTemporary = false, thread } = instance
    if (!isTemporary && !thread.isQuarantine && !consumer.broadcast) this.groups?.joined(event, group)
    if (!thread.isQuarantine) this.groups?.changed?.(event)
    this.onTopology()
    this.subscribersChanged()
    return () => {
      // The subscribers of a thread that ends are gone before they say so.
      const isForGood = consumer.instances.includes(instance)
      if (this.#topology.removeInstance(consumer, instance)) this.#groupGone(consumer, isForGood)
    }
  }

  /** The last instance of a consumer has unsubscribed: nobody wants what still waits, or comes back to wait. */
  #groupGone(consumer: Consumer, isForGood = false): void {
    consumer.isGone = true
    this.onTopology()
    this.groups?.left(consumer.event, consumer.group, isForGood)
    this.groups?.changed?.(consumer.event)
    this.#dropWaiting(consumer)
  }

  #dropWaiting(consumer: Consumer): void {
    for (const delivery of [...this.#waiting.takeOf(consumer), ...this.#keys.takeHeld(consumer)])
      this.#finish(delivery, SUBSCRIBER_GONE, false)
    this.#quarantine.changed()
    this.#quarantine.pump()
  }

  /** A quarantine lane is up, and all its subscribers are known. */
  quarantineUp(thread: SubscriberThread): void {
    this.#quarantine.threadUp(thread)
    this.#quarantine.pump()
  }

  /** A thread gets nothing more. It may finish what it has. */
  threadLeaving(thread: SubscriberThread): void {
    this.#topology.removeThread(thread)
    this.#quarantine.threadGone(thread)
  }

  /**
   * A thread is gone: its instances leave, and the deliveries that it had not answered go to others, before those that wait already.
   * @param unread deliveries that it never began: they are under no suspicion
   * @param blackBox what is known of its death; null when it ended because it was told to
   */
  threadGone(thread: SubscriberThread, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    this.threadLeaving(thread)
    const again: Delivery[] = []
    for (const delivery of this.#unanswered.takeFrom(thread)) {
      this.#quarantine.ended(delivery)
      if (delivery.queue.instance !== null) {
        this.#finish(delivery, 'The thread that handled the request has died')
        continue
      }
      if (blackBox !== null && !unread.has(delivery.id)) {
        delivery.deaths++
        delivery.blackBox = blackBox
        this.trace.note(delivery, {
          name: 'thread_death',
          deaths: delivery.deaths,
          plugin: delivery.instance?.plugin ?? null,
        })
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

  /** Removes the consumers that no thread has any more: the code is new, or their last thread died and its successor lacks them. */
  dropVacant(): void {
    for (const consumer of this.#topology.vacant()) {
      const dropped = consumer.pending - this.#unanswered.countOf(consumer)
      if (dropped > 0) {
        const but = this.groups?.isKnown(consumer.event, consumer.group) ? ', but for those in the event log' : ''
        this.#options.log(
          'WARNING',
          `${consumer.group} is gone: ${dropped} events that waited for it are dropped${but}`,
        )
      }
      this.#topology.drop(consumer)
      this.#groupGone(consumer)
    }
  }

  /** The deliveries that a thread has not answered, the oldest first. */
  inFlightAt(thread: SubscriberThread, unread: ReadonlySet<number>): WorkInFlight[] {
    return this.#unanswered.worksAt(thread, unread)
  }

  /** Pauses the subscribers of a plugin, so that their events wait, or resumes them. */
  pausePlugin(plugin: string, isPaused: boolean): void {
    this.#topology.pause(plugin, isPaused)
    if (!isPaused) this.subscribersChanged()
  }

  /** There are new subscribers, or paused ones go on: waiting deliveries may have room. */
  subscribersChanged(): void {
    this.#quarantine.changed()
    this.#pump()
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

  /** Who gets an event now. */
  consumersOf(event: string): readonly Consumer[] {
    return this.#topology.consumersOf(event)
  }

  /** Groups that have subscribed after their plugins had booted. */
  temporaryGroupsOf(event: string): string[] {
    return this.#topology.consumersOf(event).flatMap(({ group, isTemporary }) => (isTemporary ? [group] : []))
  }

  /** Plugins that have instances of a group. */
  pluginsOf(event: string, group: string): string[] {
    return this.#topology.consumer(event, group)?.instances.map(({ plugin }) => plugin) ?? []
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
    if (shares?.length === 1) return this.#takeOne(event, shares[0]!)
    return this.#take(event, this.#topology.consumersOf(event.event), shares)
  }

  #take(event: HubEvent, consumers: readonly Consumer[], shares: readonly Share[] | null): number {
    if (shares === null && consumers.length === 1 && !consumers[0]!.broadcast) {
      this.#start(consumers[0]!.queue, event)
      return 1
    }
    const taken: { delivery: Delivery; share: Share | null }[] = []
    for (const consumer of consumers) {
      const share = shares === null ? null : shares.find(({ group }) => group === consumer.group)
      if (share === undefined) continue
      for (const queue of consumer.queuesFor(share?.instance))
        taken.push({ delivery: deliveryOf(queue, event, share), share })
    }
    for (const { delivery } of taken) this.#accept(delivery)
    // When all have been accepted: the first may end at once.
    for (const { delivery, share } of taken) this.#begin(delivery, share)
    return taken.length
  }

  #takeOne(event: HubEvent, share: Share): number {
    const consumer = this.#topology.consumer(event.event, share.group)
    if (consumer === undefined) return 0
    if (consumer.broadcast) return this.#take(event, [consumer], [share])
    const delivery = deliveryOf(consumer.queue, event, share)
    this.#accept(delivery)
    this.#begin(delivery, share)
    return 1
  }

  #start(queue: DeliveryQueue, event: HubEvent): void {
    const delivery = deliveryOf(queue, event, null)
    this.#accept(delivery)
    this.#begin(delivery, null)
  }

  #checkRoom({ event, key, payload, parentId, requestId }: EventFrame, consumers: readonly Consumer[]): void {
    const { held } = this.#keys
    const budget = this.#budget
    budget.check(consumers, payload.length, parentId === null && requestId === null)
    if (held.deliveries === 0 || key === null) return
    const parking = consumers.filter(({ group }) => this.parked.find({ event, group, key }) !== undefined).length
    if (parking > 0) budget.checkHeld(held, parking, payload.length)
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

  /** What each subscriber has waiting and has done: for whoever shares the work with other processes. */
  workloads(): Iterable<Consumer> {
    return this.#topology.consumers()
  }

  // ── to a thread ───────────────────────────────────────────────────────────

  /** From now on it counts. */
  #accept(delivery: Delivery): void {
    this.#budget.take(delivery)
    delivery.event.source?.accepted?.(delivery)
  }

  /** @param share what its log or broker knows of it; null: nothing has been done with it */
  #begin(delivery: Delivery, share: Share | null): void {
    const { source, delayMs } = delivery.event
    if (share?.failure) this.#fail(delivery, share.error, share.failure)
    // The durable log and the brokers keep their own until they are due.
    else if (source === null && delayMs > 0) this.#delayed.delayFirst(delivery, delayMs, this.#admit)
    else this.#keys.admit(delivery)
  }

  readonly #admit = (delivery: Delivery): void => this.#keys.admit(delivery)

  readonly #enqueue = (delivery: Delivery): void => {
    const { consumer, queue, event } = delivery
    if (consumer.isGone) return this.#finish(delivery, SUBSCRIBER_GONE, false)
    // It stays in the log, perhaps behind one of its key that does, too.
    if (this.#delayed.isReturning && event.source?.isBroker === false)
      return this.#finish(delivery, SUBSCRIBER_GONE, false)
    // Its turn has come, and what is left of its key goes on behind its letter.
    if (delivery.deaths >= POISON_DEATHS) return this.#fail(delivery, poisonMessage(delivery), 'poison')
    if (delivery.dueMs !== 0) return this.#enqueueLater(delivery)
    if (delivery.deaths > 0) return this.#quarantine.add(delivery)
    if (queue.waiting.size === 0 && this.#dispatch(delivery)) return
    if (this.#delayed.isReturning && isUntried(delivery)) return this.#finish(delivery, SUBSCRIBER_GONE, false)
    this.#waiting.push(delivery)
  }

  /** Its key's turn has come before its time: the next of the key waits with it. */
  #enqueueLater(delivery: Delivery): void {
    const delayMs = Math.max(0, delivery.dueMs - this.clock.nowMs())
    delivery.dueMs = 0
    if (!this.#delayed.delayRetry(delivery, delayMs, this.#enqueue)) this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  /** Gives a delivery to a thread. False when none has room. */
  readonly #dispatch = (delivery: Delivery): boolean => {
    const { consumer, event } = delivery
    const only = delivery.queue.instance
    if (only !== null && !consumer.instances.includes(only)) {
      // The instance has left, or its thread has died: nobody else may get this delivery, and none may wait for it.
      this.#finish(delivery, 'The thread that was to handle the request is gone')
      return true
    }
    if (!delivery.queue.hasRoom) return false
    const instance = only ?? consumer.pickInstance()
    if (instance === null || instance.isPaused || !instance.thread.hasRoom) return false
    // A delivery that was begun in time is finished, retries included.
    if (event.expiresMs !== 0 && !delivery.isBegun && event.expiresMs < this.clock.nowMs()) {
      this.#finish(delivery, 'The request has expired before it was handled')
      return true
    }
    return this.#send(delivery, instance)
  }

  /** False when the thread did not take it after all. */
  #send(delivery: Delivery, instance: SubscriberInstance): boolean {
    const { event } = delivery
    if (event.source?.mayBegin?.(delivery) === false) return false
    const id = this.#unanswered.nextId()
    this.trace.sending(delivery)
    event.subscriber = instance.subscriberIndex
    event.attempt = event.requester === null ? delivery.attempt : delivery.attempt | WANTS_REPLY
    if (!instance.thread.send(id, event)) return false
    if (!delivery.isBegun) event.source?.begun?.(delivery)
    this.#unanswered.add(delivery, id, instance)
    if (delivery.consumer.outage !== null) this.#outages.tried(delivery.consumer)
    return true
  }

  /** A thread has room again, or has just come up. */
  #pump(): void {
    // Suspects first: where few deliveries are handled at a time, those that wait would leave no place for them.
    this.#quarantine.pump()
    if (!this.#waiting.isEmpty) this.#waiting.pump(this.#dispatch)
  }

  // ── answers of the threads ────────────────────────────────────────────────

  delivered(deliveryId: number): void {
    const delivery = this.#answered(deliveryId)
    if (delivery !== undefined) {
      const { requester } = delivery.event
      if (requester !== null) requester.onlyFailures = false
      this.#toolIsThere(delivery)
      this.#finish(delivery, null)
    }
    this.#pump()
  }

  /** The delivery was handled, and the subscriber returned an object to a publisher who waits for it. */
  reply(deliveryId: number, reply: string): void {
    this.#unanswered.get(deliveryId)?.event.requester?.reply(reply)
    this.delivered(deliveryId)
  }

  failed(deliveryId: number, error: WireError): void {
    const delivery = this.#answered(deliveryId)
    if (delivery !== undefined) {
      if (error.away) this.#awaitTool(delivery, error.message)
      else {
        this.#toolIsThere(delivery)
        this.#fail(delivery, error.message, error.unrecoverable ? 'unrecoverable' : 'once')
      }
    }
    this.#pump()
  }

  #toolIsThere({ consumer }: Delivery): void {
    if (consumer.outage !== null) this.#outages.over(consumer)
  }

  /** A tool is away: the delivery waits before those that wait already, and the attempt was none. */
  #awaitTool(delivery: Delivery, error: string): void {
    const { consumer, event } = delivery
    this.#outages.began(consumer)
    delivery.instance = null
    delivery.error = error
    delivery.isTried = true
    this.trace.note(delivery, { name: 'tool_away' })
    if (event.source?.leaving?.(delivery)) return this.#leave(delivery)
    const isReturned = this.#delayed.isReturning && event.source !== null
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
   * @param fault why there is no reply from it; null when the subscriber has handled it
   * @param isDone false when its subscriber has gone from this process
   */
  #finish(delivery: Delivery, fault: string | null, isDone = true): void {
    const { requester, source } = delivery.event
    if (isDone) delivery.consumer.ended++
    if (delivery.span !== null) this.trace.ended(delivery, isDone)
    this.#budget.release(delivery)
    // Another process may still reply to a delivery that goes back to its broker.
    if (requester !== null && (isDone || source === null)) replySettled(requester, fault)
    source?.ended(delivery, isDone)
    this.deadLetters.replayEnded(delivery.event, fault, null)
    this.#keys.finished(delivery)
  }

  /** Tries it again later, or makes it a dead letter. */
  #fail(delivery: Delivery, error: string, failure: Failure): void {
    const { consumer, event, attempt } = delivery
    if (failure === 'once' && attempt <= consumer.retries) {
      delivery.attempt++
      delivery.instance = null
      delivery.error = error
      delivery.isTried = true
      const delayMs = retryDelayMs(attempt, consumer.backoffMs, this.#options.chance.fraction)
      this.trace.note(delivery, { name: 'retry', attempt: delivery.attempt, delayMs })
      const dueMs = Math.ceil(this.clock.nowMs() + delayMs)
      const mayLeave = event.key === null && delivery.queue.instance === null && delivery.deaths === 0
      if (event.source?.retrying?.(delivery, dueMs, mayLeave)) return this.#leave(delivery)
      if (!this.#delayed.delayRetry(delivery, delayMs, this.#enqueue)) this.#finish(delivery, SUBSCRIBER_GONE, false)
      return
    }
    // The attempt that is under way has ended with its thread, and so have others before.
    const attempts = failure === 'poison' ? attempt - 1 + delivery.deaths : attempt
    this.trace.givenUp(delivery, attempts)
    const failed: FailedDelivery = {
      event,
      group: consumer.group,
      subscriber: delivery.instance?.plugin ?? consumer.instances[0]?.plugin ?? consumer.group,
      error,
      attempts,
      blackBox: failure === 'poison' ? delivery.blackBox : null,
      // Nothing waits for a subscriber that has left, and whoever comes under its name has an order of his own.
      parks: consumer.parks && !consumer.isGone && event.key !== null && delivery.queue.instance === null,
      trace: this.trace.scopeOf(delivery),
    }
    this.records.failed(failed)
    if (event.source === null) {
      this.deadLetters.add(failed)
      this.#finish(delivery, error)
    }
    // It is acknowledged only when the letter is stored.
    else void event.source.storeDeadLetter(delivery, failed).then(() => this.#finish(delivery, error))
  }

  /** It waits for its next attempt in the durable log. */
  #leave(delivery: Delivery): void {
    if (delivery.span !== null) this.trace.ended(delivery, false)
    this.#budget.release(delivery)
    this.#keys.finished(delivery)
  }

  #sweep(): void {
    // One by one: the place of an attempt is free when that attempt has been given up.
    for (const id of this.#unanswered.late(this.clock.steadyMs())) {
      const delivery = this.#unanswered.take(id)
      if (delivery === undefined) continue
      const { thread } = delivery.instance!
      thread.abandon(delivery.id)
      this.#quarantine.ended(delivery)
      if (thread.isQuarantine) this.#options.onQuarantineUsed()
      this.#fail(delivery, `The subscriber did not finish within ${delivery.consumer.timeoutMs} ms`, 'once')
    }
    this.#outages.look()
    // Nobody says when a lane becomes ready, or its loop turns again.
    this.subscribersChanged()
  }

  // ── end ───────────────────────────────────────────────────────────────────

  /**
   * This process ends: a broker gets back the deliveries that no thread has had or that are between two attempts, and those that fail from
   * now on. What the durable log has stays there. What waits in memory behind dead letters is dropped.
   */
  returnDelayed(): void {
    const retries = this.#delayed.takeReturnable()
    const dropped = this.#keys.end()
    if (dropped > 0) {
      const message = `${dropped} events that waited behind dead letters in memory are lost with this process`
      this.#options.log('WARNING', message)
    }
    const mayGo = (delivery: Delivery): boolean => isUntried(delivery) || isAwaited(delivery)
    for (const delivery of [...retries, ...this.#waiting.takeIf(mayGo)]) this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  /**
   * Ends deliveries of stored events here that no thread has at present: they stay in the log.
   * @param isWanted told the position of an event
   */
  takeBack(isWanted: (position: number) => boolean): void {
    const isTaken = ({ event, queue }: Delivery): boolean =>
      event.source !== null && event.seq > 0 && queue.instance === null && isWanted(event.seq)
    const behind = this.#topology.consumers().flatMap(({ queue }) => this.#keys.takeBehind(queue, isTaken))
    // Their keys' turns have not come.
    for (const delivery of behind) {
      this.#budget.release(delivery)
      delivery.event.source!.ended(delivery, false)
    }
    for (const delivery of [
      ...this.#delayed.takeIf(isTaken),
      ...this.#waiting.takeIf(isTaken),
      ...this.#quarantine.takeIf(isTaken),
    ])
      this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  /** Ends the deliveries here that wait for this one, because of its key: they stay in the store. */
  takeBehind(delivery: Delivery): void {
    const isStored = ({ event }: Delivery): boolean => event.source !== null
    for (const behind of this.#keys.takeBehindKey(delivery, isStored)) {
      this.#budget.release(behind)
      behind.event.source!.ended(behind, false)
    }
  }

  /** Takes no more events. Deliveries that are under way may still be answered. */
  close(): void {
    this.#closed = true
    for (const timer of this.#requestTimers) this.clock.cancel(timer)
    this.clock.cancel(this.#sweepTimer)
    this.#delayed.close()
    this.trace.close()
  }
}

/** Somebody else has it, too, and nobody here can handle it now. */
const isAwaited = ({ event, consumer }: Delivery): boolean => event.source !== null && consumer.outage !== null

/** A broker's delivery that may go to another process as if nothing had been. */
const isUntried = ({ event, isBegun }: Delivery): boolean => event.source !== null && !isBegun
