import type { SubscribeOptions, TopologyEntry } from '../../contracts/event-bus.ts'
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { WireError } from '../../core/errors/wire.ts'
import { type EventFrame, WANTS_REPLY } from '../../transport/frames/event-frame.ts'
import {
  type BrokerDelivery,
  type Consumer,
  type Delivery,
  type DeliveryQueue,
  deliveryOf,
  type HubEvent,
  type Requester,
  type SubscriberInstance,
  type SubscriberThread,
} from './consumer.ts'
import { DelayQueue } from './delay-queue.ts'
import { DeliveryTrace } from './delivery-trace.ts'
import { InFlight } from './in-flight.ts'
import { KeyOrder } from './key-order.ts'
import { POISON_DEATHS, poisonMessage, Quarantine } from './quarantine.ts'
import { QueueBudget } from './queue-budget.ts'
import { type RecordLog, Records } from './records.ts'
import { awaitReply, replySettled } from './requester.ts'
import { retryDelayMs } from './retry.ts'
import { Topology } from './topology.ts'
import { WaitingQueues } from './waiting-queues.ts'

export { POISON_DEATHS }

/** Why nobody replies. */
const SUBSCRIBER_GONE = 'The subscriber is gone'
/** How often deadlines are looked at, milliseconds. */
const SWEEP_MS = 100

export interface HubOptions {
  /** Deliveries that wait or are under way at most, delayed ones and retries included. */
  maxQueue: number
  /** There are deliveries that a thread died of, or no more: whether a quarantine lane is needed. */
  onQuarantine: (isWanted: boolean) => void
  /** A handler in the quarantine lane was given up: the next suspect needs a fresh one. */
  onQuarantineUsed: () => void
  log: RecordLog
}

/**
 * The event hub of the in-process bus: publisher → hub → thread → acknowledgement.
 * It knows who subscribes, keeps what no thread has room for, repeats what failed, and remembers what happened.
 */
export class Hub {
  readonly records: Records
  readonly trace = new DeliveryTrace()
  readonly #options: HubOptions
  readonly #topology = new Topology()
  readonly #inFlight = new InFlight()
  readonly #waiting = new WaitingQueues()
  readonly #keys = new KeyOrder((delivery) => this.#enqueue(delivery))
  readonly #delayed = new DelayQueue()
  readonly #sweepTimer: NodeJS.Timeout
  readonly #budget: QueueBudget
  readonly #quarantine: Quarantine
  #closed = false

  constructor(options: HubOptions) {
    this.#options = options
    this.records = new Records(options.log)
    this.#budget = new QueueBudget(options.maxQueue)
    this.#quarantine = new Quarantine({
      send: (delivery, instance) => this.#send(delivery, instance),
      drop: (delivery) => this.#finish(delivery, SUBSCRIBER_GONE, false),
      onLost: ({ group }, count) =>
        options.log('WARNING', `${group} is in no lane: ${count} events that a lane died with are dropped`),
      onWanted: options.onQuarantine,
    })
    this.#sweepTimer = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  /** Deliveries that are accepted and not finished. */
  get pending(): number {
    return this.#budget.pending
  }

  /** True when the queue is so full that nothing new should be begun. */
  get isCrowded(): boolean {
    return this.#budget.isCrowded
  }

  // ── topology ──────────────────────────────────────────────────────────────

  subscribe(event: string, group: string, options: SubscribeOptions, instance: SubscriberInstance): () => void {
    const consumer = this.#topology.addInstance(event, group, options, instance)
    this.#quarantine.changed()
    this.#pump()
    return () => {
      if (!this.#topology.removeInstance(consumer, instance)) return
      this.#leave(consumer)
    }
  }

  /** Its last instance left by its own will: nobody wants what still waits, or comes back to wait. */
  #leave(consumer: Consumer): void {
    consumer.isGone = true
    for (const delivery of this.#waiting.takeOf(consumer)) this.#finish(delivery, SUBSCRIBER_GONE, false)
    this.#quarantine.changed()
    this.#quarantine.pump()
  }

  /** A quarantine thread has subscribed to all that it hosts. */
  quarantineUp(thread: SubscriberThread): void {
    this.#quarantine.threadUp(thread)
    this.#quarantine.pump()
  }

  /** A thread gets nothing more. What it has, it may finish. */
  threadLeaving(thread: SubscriberThread): void {
    this.#topology.removeThread(thread)
    this.#quarantine.threadGone(thread)
  }

  /**
   * A thread is gone: its instances leave, and what it had not answered goes to the others, before what waits for them.
   * @param unread deliveries that it never began: they are under no suspicion
   * @param blackBox what is known of its death; null when it ended because it was told to
   */
  threadGone(thread: SubscriberThread, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    this.threadLeaving(thread)
    const again: Delivery[] = []
    for (const delivery of this.#inFlight.takeFrom(thread)) {
      this.#quarantine.ended(delivery)
      if (delivery.queue.instance !== null) {
        this.#finish(delivery, 'The thread that handled the request has died')
        continue
      }
      if (blackBox !== null && !unread.has(delivery.id)) {
        delivery.deaths++
        delivery.blackBox = blackBox
        this.trace.note(delivery, { name: 'thread_death', deaths: delivery.deaths })
      }
      if (delivery.deaths >= POISON_DEATHS) this.#fail(delivery, poisonMessage(delivery), true)
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

  /** Subscribers that no thread has any more leave: the code is new, or their last thread died and its successor does without. */
  dropVacant(): void {
    for (const consumer of this.#topology.vacant()) {
      const dropped = consumer.pending - this.#inFlight.countOf(consumer)
      if (dropped > 0)
        this.#options.log('WARNING', `${consumer.group} is gone: ${dropped} events that waited for it are dropped`)
      this.#topology.drop(consumer)
      this.#leave(consumer)
    }
  }

  /** What a thread has been given and has not answered, the oldest first. */
  inFlightAt(thread: SubscriberThread, unread: ReadonlySet<number>): WorkInFlight[] {
    return this.#inFlight.worksAt(thread, unread)
  }

  /** Lets the events of a plugin's subscribers wait, or go on. */
  pausePlugin(plugin: string, isPaused: boolean): void {
    this.#topology.pause(plugin, isPaused)
    if (isPaused) return
    this.#quarantine.changed()
    this.#pump()
  }

  topology(): Record<string, TopologyEntry> {
    return this.#topology.entries()
  }

  // ── publishing ────────────────────────────────────────────────────────────

  /** Takes an event. @throws EVENT_BUS_FULL */
  publish(event: EventFrame, origin: SubscriberThread | null, requester: Requester | null = null): void {
    if (this.#closed) throw new HeddleError('EVENT_BUS_FULL', 'The service is shutting down and takes no more events')
    const topic = this.#topology.topic(event.event)
    const { consumers } = topic
    if (consumers.length > 0) {
      this.#budget.check(consumers.length, event.payload.length, event.parentId === null && event.requestId === null)
      if (this.#topology.hasPaused) this.#checkPaused(consumers, event.payload.length)
    }
    this.record(event, origin)
    if (consumers.length === 0) return
    const taken = event as HubEvent
    taken.producer = event.trace
    taken.expiresMs = event.ttlMs === 0 ? 0 : Date.now() + event.delayMs + event.ttlMs
    // It is open until all have been accepted: one may end at once.
    if (requester !== null) requester.open++
    for (let n = 0; n < consumers.length; n++) {
      const consumer = consumers[n]!
      if (consumer.broadcast)
        for (const instance of consumer.instances)
          this.#accept(consumer.queueOf(instance), taken, event.delayMs, requester)
      else this.#accept(consumer.queue, taken, event.delayMs, requester)
    }
    if (requester !== null) replySettled(requester, SUBSCRIBER_GONE)
  }

  /** Remembers an event and tells the listeners, whoever delivers it. */
  record(event: EventFrame, origin: SubscriberThread | null): void {
    const topic = this.#topology.topic(event.event)
    topic.fireCount++
    topic.emitters.add(event.emitter)
    this.records.published(event, topic.subscribers, origin)
  }

  /**
   * Takes on a delivery of a broker. Its order is the broker's affair, and its time to live.
   * @param event its payload is text; it belongs to the hub from now on
   * @returns false when nobody here subscribes to it
   */
  deliverFromBroker(event: EventFrame, brokerDelivery: BrokerDelivery): boolean {
    const { group, instance, attempt, deaths, blackBox, fault, span, requester, source } = brokerDelivery
    const consumer = this.#topology.consumer(event.event, group)
    if (consumer === undefined || this.#closed) return false
    const queue = consumer.broadcast && instance !== null ? consumer.queueOf(instance) : consumer.queue
    const delivery = deliveryOf(
      queue,
      Object.assign(event, { key: null, expiresMs: 0, producer: event.trace }),
      requester,
      source,
    )
    Object.assign(delivery, { attempt, deaths, blackBox, instance, span, isBegun: true })
    this.#budget.take(delivery)
    if (fault !== null) this.#fail(delivery, fault, false)
    else if (deaths >= POISON_DEATHS) this.#fail(delivery, poisonMessage(delivery), true)
    else this.#enqueue(delivery)
    return true
  }

  /** Publishes and resolves with the first object that a subscriber returns. */
  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    if (!this.#topology.hasConsumer(event.event)) {
      return Promise.reject(new HeddleError('EVENT_BUS_NO_SUBSCRIBER', `Nobody subscribes to ${event.event}`))
    }
    return awaitReply(event.event, timeoutMs, this.#delayed.timers, (requester) =>
      this.publish(event, origin, requester),
    )
  }

  #checkPaused(consumers: readonly Consumer[], payloadBytes: number): void {
    const count = consumers.filter(({ isPaused }) => isPaused).length
    if (count > 0) this.#budget.checkPaused(this.#topology.pausedPending(), count, payloadBytes)
  }

  #accept(queue: DeliveryQueue, event: HubEvent, delayMs: number, requester: Requester | null): void {
    const delivery = deliveryOf(queue, event, requester)
    this.#budget.take(delivery)
    if (delayMs > 0) this.#delayed.delay(delayMs, () => this.#keys.admit(delivery))
    else this.#keys.admit(delivery)
  }

  readonly #enqueue = (delivery: Delivery): void => {
    const { consumer, queue } = delivery
    if (consumer.isGone) return this.#finish(delivery, SUBSCRIBER_GONE, false)
    if (delivery.deaths > 0) return this.#quarantine.add(delivery)
    if (queue.waiting.size === 0 && this.#dispatch(delivery)) return
    this.#waiting.push(delivery)
  }

  /** Gives a delivery to a thread. False when none has room. */
  readonly #dispatch = (delivery: Delivery): boolean => {
    const { consumer, event } = delivery
    const only = delivery.queue.instance
    if (only !== null && !consumer.instances.includes(only)) {
      // It has left, or its thread has died: nobody else is to get this, and nobody is to wait behind it.
      this.#finish(delivery, 'The thread that was to handle the request is gone')
      return true
    }
    const instance = only ?? consumer.pickInstance()
    if (instance === null || instance.isPaused || !instance.thread.hasRoom) return false
    // What was begun in time is brought to its end, retries included.
    if (event.expiresMs !== 0 && !delivery.isBegun && event.expiresMs < Date.now()) {
      this.#finish(delivery, 'The request has expired before it was handled')
      return true
    }
    return this.#send(delivery, instance)
  }

  /** False when it was not taken after all. */
  #send(delivery: Delivery, instance: SubscriberInstance): boolean {
    const { event } = delivery
    const id = this.#inFlight.nextId()
    this.trace.sending(delivery)
    event.subscriber = instance.subscriberIndex
    event.attempt = delivery.requester === null ? delivery.attempt : delivery.attempt | WANTS_REPLY
    if (!instance.thread.send(id, event, delivery.source === null ? 'bytes' : 'text')) return false
    this.#inFlight.add(delivery, id, instance)
    return true
  }

  /** A thread has room again (or has just come up). */
  #pump(): void {
    if (!this.#waiting.isEmpty) this.#waiting.pump(this.#dispatch)
    this.#quarantine.pump()
  }

  // ── answers of the threads ────────────────────────────────────────────────

  delivered(deliveryId: number): void {
    const delivery = this.#take(deliveryId)
    if (delivery !== undefined) {
      if (delivery.requester !== null) delivery.requester.onlyFailures = false
      this.#finish(delivery, null)
    }
    this.#pump()
  }

  /** Delivered, and the subscriber returned an object to one who asked for it. */
  deliveryReply(deliveryId: number, reply: string): void {
    this.#inFlight.get(deliveryId)?.requester?.reply(reply)
    this.delivered(deliveryId)
  }

  deliveryFailed(deliveryId: number, error: WireError): void {
    const delivery = this.#take(deliveryId)
    if (delivery !== undefined) this.#fail(delivery, error.message, false)
    this.#pump()
  }

  #take(deliveryId: number): Delivery | undefined {
    const delivery = this.#inFlight.take(deliveryId)
    if (delivery !== undefined && delivery.deaths > 0) this.#quarantine.ended(delivery)
    return delivery
  }

  /**
   * @param fault why there is no reply from it; null when the subscriber has handled it
   * @param isDone false when its subscriber has gone from this process
   */
  #finish(delivery: Delivery, fault: string | null, isDone = true): void {
    const { requester, source } = delivery
    if (delivery.span !== null) this.trace.ended(delivery, isDone)
    this.#budget.release(delivery)
    // Another process may still reply to what goes back to the broker.
    if (requester !== null && (isDone || source === null)) replySettled(requester, fault)
    source?.ended(isDone)
    this.#keys.finished(delivery)
  }

  #fail(delivery: Delivery, error: string, isFinal: boolean): void {
    const { consumer, event, attempt } = delivery
    if (!isFinal && attempt <= consumer.retries) {
      delivery.attempt++
      delivery.instance = null
      const delayMs = retryDelayMs(attempt, consumer.backoffMs)
      this.trace.note(delivery, { name: 'retry', attempt: delivery.attempt, delayMs })
      if (!this.#delayed.delayRetry(delivery, delayMs, this.#enqueue)) this.#finish(delivery, SUBSCRIBER_GONE, false)
      return
    }
    this.trace.givenUp(delivery, attempt)
    const { source } = delivery
    const stored = this.records.failed(
      {
        event,
        group: consumer.group,
        subscriber: delivery.instance?.plugin ?? consumer.instances[0]?.plugin ?? consumer.group,
        error,
        attempts: attempt,
        blackBox: isFinal ? delivery.blackBox : null,
        trace: this.trace.scopeOf(delivery),
      },
      source,
    )
    // Only now it is acknowledged.
    if (stored === undefined) this.#finish(delivery, error)
    else void stored.then(() => this.#finish(delivery, error))
  }

  /** This process ends: a broker gets back what delayed between two attempts, and what fails from now on. */
  returnDelayed(): void {
    for (const delivery of this.#delayed.takeBrokerDeliveries()) this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  #sweep(): void {
    for (const delivery of this.#inFlight.takeLate(Date.now())) {
      const { thread } = delivery.instance!
      thread.abandon(delivery.id)
      this.#quarantine.ended(delivery)
      if (thread.isQuarantine) this.#options.onQuarantineUsed()
      this.#fail(delivery, `The subscriber did not finish within ${delivery.consumer.timeoutMs} ms`, false)
    }
    // Lanes become ready, or turn again, without a word.
    this.#quarantine.changed()
    this.#pump()
  }

  /** Delivers a dead letter to its subscriber once more, and to nobody else. False when there is none, or nobody to take it. */
  replayDeadLetter(id: string): boolean {
    const letter = this.records.deadLetter(id)
    if (letter === undefined) return false
    const consumer = this.#topology.consumer(letter.event.event, letter.group)
    if (consumer === undefined) return false
    this.records.deleteDeadLetter(id)
    this.#accept(consumer.queue, { ...letter.event, trace: letter.event.producer, expiresMs: 0 }, 0, null)
    return true
  }

  /** Takes nothing more. What is under way may still be answered. */
  close(): void {
    this.#closed = true
    clearInterval(this.#sweepTimer)
    this.#delayed.close()
    this.trace.close()
  }
}
