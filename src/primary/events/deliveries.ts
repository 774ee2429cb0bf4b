// The deliveries of the hub, from their acceptance to their end.
import type { BlackBox, WorkInFlight } from '../../contracts/registry.ts'
import type { WireError } from '../../core/errors/wire.ts'
import type { Chance, Clock, Timer } from '../../core/schedule/clock.ts'
import { WANTS_REPLY } from '../../transport/frames/event-frame.ts'
import type { Consumer, Delivery, Failure, Share, SubscriberInstance, SubscriberThread } from './consumer.ts'
import { DeliveryTrace } from './delivery-trace.ts'
import { type HeldDeliveries, KeyOrder, type KeyOrderOptions, type ParkedKeys } from './key-order.ts'
import { POISON_DEATHS, poisonMessage, Quarantine } from './quarantine.ts'
import { QueueBudget } from './queue-budget.ts'
import { DelayQueue, UnansweredDeliveries, WaitingQueues } from './queues.ts'
import type { RecordLog, Records } from './records.ts'
import { replySettled } from './requester.ts'

/** Longest pause before a retry. */
export const RETRY_MAX_DELAY_MS = 300_000

/**
 * Pause before the attempt that follows attempt number `attempt`: exponential, with full jitter.
 * Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function retryDelayMs(attempt: number, backoffMs: number, random: () => number): number {
  return random() * Math.min(RETRY_MAX_DELAY_MS, backoffMs * 2 ** (attempt - 1))
}

/** Why there is no reply. */
export const SUBSCRIBER_GONE = 'The subscriber is gone'
/** How often deadlines are checked, milliseconds. */
const SWEEP_MS = 100

export interface DeliveriesOptions {
  /** Deliveries that wait or are under way at most, delayed ones and retries included. */
  maxQueue: number
  /** Told whether a quarantine lane is needed: there are deliveries that a thread died of, or no more. */
  onQuarantine: (isWanted: boolean) => void
  /** A handler in the quarantine lane was given up: the next suspect needs a fresh lane. */
  onQuarantineUsed: () => void
  log: RecordLog
  clock: Clock
  chance: Chance
}

/**
 * The deliveries that the hub has accepted, each until it ends: it waits for room, goes to a thread, is answered, and is tried again
 * when it failed.
 */
export class Deliveries {
  readonly budget: QueueBudget
  readonly trace = new DeliveryTrace()
  readonly #options: DeliveriesOptions
  readonly #records: Records
  readonly #clock: Clock
  readonly #unanswered: UnansweredDeliveries
  readonly #waiting = new WaitingQueues()
  readonly #keys: KeyOrder
  readonly #delayed: DelayQueue
  readonly #sweepTimer: Timer
  readonly #quarantine: Quarantine

  constructor(options: DeliveriesOptions, records: Records, consumerOf: KeyOrderOptions['consumerOf']) {
    this.#options = options
    this.#clock = options.clock
    this.#unanswered = new UnansweredDeliveries(options.clock)
    this.#delayed = new DelayQueue(options.clock)
    this.#keys = new KeyOrder({
      begin: this.#enqueue,
      leave: (delivery) => this.budget.release(delivery),
      drop: (delivery) => this.#finish(delivery, SUBSCRIBER_GONE, false),
      consumerOf,
    })
    records.parked = this.parked
    this.#records = records
    this.budget = new QueueBudget(options.maxQueue)
    this.#quarantine = new Quarantine({
      send: (delivery, instance) => this.#send(delivery, instance),
      drop: (delivery) => this.#finish(delivery, SUBSCRIBER_GONE, false),
      onWanted: options.onQuarantine,
    })
    this.#sweepTimer = this.#clock.every(SWEEP_MS, () => this.#sweep()).unref()
  }

  /** Keys that wait behind dead letters. */
  get parked(): ParkedKeys {
    return this.#keys.parked
  }

  /** What waits in memory behind them. */
  get held(): HeldDeliveries {
    return this.#keys.held
  }

  // ── to a thread ───────────────────────────────────────────────────────────

  /** From now on it counts. */
  accept(delivery: Delivery): void {
    this.budget.take(delivery)
    delivery.event.source?.accepted?.(delivery)
  }

  /** @param share what its log or broker knows of it; null: nothing has been done with it */
  begin(delivery: Delivery, share: Share | null): void {
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
    const delayMs = Math.max(0, delivery.dueMs - this.#clock.nowMs())
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
    if (instance === null || instance.isPaused || instance.isHeldBack || !instance.thread.hasRoom) return false
    // A delivery that was begun in time is finished, retries included.
    if (event.expiresMs !== 0 && !delivery.isBegun && event.expiresMs < this.#clock.nowMs()) {
      this.#finish(delivery, 'The request has expired before it was handled')
      return true
    }
    return this.#send(delivery, instance)
  }

  /** False when the thread did not take it after all. */
  #send(delivery: Delivery, instance: SubscriberInstance): boolean {
    const { event } = delivery
    const id = this.#unanswered.nextId()
    this.trace.sending(delivery)
    event.subscriber = instance.subscriberIndex
    event.attempt = event.requester === null ? delivery.attempt : delivery.attempt | WANTS_REPLY
    if (!instance.thread.send(id, event)) return false
    if (!delivery.isBegun) event.source?.begun?.(delivery)
    this.#unanswered.add(delivery, id, instance)
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
    const delivery = this.#take(deliveryId)
    if (delivery !== undefined) {
      const { requester } = delivery.event
      if (requester !== null) requester.onlyFailures = false
      this.#finish(delivery, null)
    }
    this.#pump()
  }

  /** The delivery was handled, and the subscriber returned an object to a publisher who waits for it. */
  replied(deliveryId: number, reply: string): void {
    this.#unanswered.get(deliveryId)?.event.requester?.reply(reply)
    this.delivered(deliveryId)
  }

  failed(deliveryId: number, error: WireError): void {
    const delivery = this.#take(deliveryId)
    if (delivery !== undefined) this.#fail(delivery, error.message, error.unrecoverable ? 'unrecoverable' : 'once')
    this.#pump()
  }

  #take(deliveryId: number): Delivery | undefined {
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
    this.budget.release(delivery)
    // Another process may still reply to a delivery that goes back to its broker.
    if (requester !== null && (isDone || source === null)) replySettled(requester, fault)
    source?.ended(delivery, isDone)
    if (!this.#records.replays.isEmpty) this.#records.replays.ended(delivery.event, fault, null)
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
      const dueMs = Math.ceil(this.#clock.nowMs() + delayMs)
      const mayLeave = event.key === null && delivery.queue.instance === null && delivery.deaths === 0
      if (event.source?.retrying?.(delivery, dueMs, mayLeave)) return this.#leave(delivery)
      if (!this.#delayed.delayRetry(delivery, delayMs, this.#enqueue)) this.#finish(delivery, SUBSCRIBER_GONE, false)
      return
    }
    this.trace.givenUp(delivery, attempt)
    const stored = this.#records.failed(delivery, {
      event,
      group: consumer.group,
      subscriber: delivery.instance?.plugin ?? consumer.instances[0]?.plugin ?? consumer.group,
      error,
      attempts: attempt,
      blackBox: failure === 'poison' ? delivery.blackBox : null,
      // Nothing waits for a subscriber that has left, and whoever comes under its name has an order of his own.
      parks: consumer.parks && !consumer.isGone && event.key !== null && delivery.queue.instance === null,
      trace: this.trace.scopeOf(delivery),
    })
    // It is acknowledged only when the letter is stored.
    if (stored === undefined) this.#finish(delivery, error)
    else void stored.then(() => this.#finish(delivery, error))
  }

  /** It waits for its next attempt in the durable log. */
  #leave(delivery: Delivery): void {
    if (delivery.span !== null) this.trace.ended(delivery, false)
    this.budget.release(delivery)
  }

  #sweep(): void {
    // One by one: the place of an attempt is free when that attempt has been given up.
    for (const id of this.#unanswered.late(this.#clock.steadyMs())) {
      const delivery = this.#unanswered.take(id)
      if (delivery === undefined) continue
      const { thread } = delivery.instance!
      thread.abandon(delivery.id)
      this.#quarantine.ended(delivery)
      if (thread.isQuarantine) this.#options.onQuarantineUsed()
      this.#fail(delivery, `The subscriber did not finish within ${delivery.consumer.timeoutMs} ms`, 'once')
    }
    // Nobody says when a lane becomes ready, or its loop turns again.
    this.subscribersChanged()
  }

  // ── subscribers and threads that come and go ──────────────────────────────

  /** There are new subscribers, or paused ones go on: waiting deliveries may have room. */
  subscribersChanged(): void {
    this.#quarantine.changed()
    this.#pump()
  }

  /** Drops the deliveries that wait for a consumer that is gone. */
  dropWaiting(consumer: Consumer): void {
    for (const delivery of [...this.#waiting.takeOf(consumer), ...this.#keys.takeHeld(consumer)])
      this.#finish(delivery, SUBSCRIBER_GONE, false)
    this.#quarantine.changed()
    this.#quarantine.pump()
  }

  /** How many deliveries of a consumer are with no thread. */
  countWaiting(consumer: Consumer): number {
    return consumer.pending - this.#unanswered.countOf(consumer)
  }

  quarantineUp(thread: SubscriberThread): void {
    this.#quarantine.threadUp(thread)
    this.#quarantine.pump()
  }

  threadLeaving(thread: SubscriberThread): void {
    this.#quarantine.threadGone(thread)
  }

  /** The deliveries that a thread had not answered go to the others, before those that wait already. */
  threadGone(thread: SubscriberThread, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
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
        this.trace.note(delivery, { name: 'thread_death', deaths: delivery.deaths })
      }
      if (delivery.deaths >= POISON_DEATHS) this.#fail(delivery, poisonMessage(delivery), 'poison')
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

  get unansweredCount(): number {
    return this.#unanswered.count
  }

  /** The deliveries that a thread has not answered, the oldest first. */
  inFlightAt(thread: SubscriberThread, unread: ReadonlySet<number>): WorkInFlight[] {
    return this.#unanswered.worksAt(thread, unread)
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
    for (const delivery of [...retries, ...this.#waiting.takeIf(isUntried)])
      this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  /**
   * Ends deliveries of stored events here that no thread has at present: they stay in the log.
   * @param consumers all of them
   * @param isWanted told the position of an event
   */
  takeBack(consumers: Iterable<Consumer>, isWanted: (position: number) => boolean): void {
    const isTaken = ({ event, queue }: Delivery): boolean =>
      event.source !== null && event.seq > 0 && queue.instance === null && isWanted(event.seq)
    const behind = [...consumers].flatMap(({ queue }) => this.#keys.takeBehind(queue, isTaken))
    // Their keys' turns have not come.
    for (const delivery of behind) {
      this.budget.release(delivery)
      delivery.event.source!.ended(delivery, false)
    }
    for (const delivery of [...this.#delayed.takeIf(isTaken), ...this.#waiting.takeIf(isTaken)])
      this.#finish(delivery, SUBSCRIBER_GONE, false)
  }

  /** Deliveries that are under way may still be answered. */
  close(): void {
    this.#clock.cancel(this.#sweepTimer)
    this.#delayed.close()
    this.trace.close()
  }
}

/** A broker's delivery that may go to another process as if nothing had been. */
const isUntried = ({ event, isBegun }: Delivery): boolean => event.source !== null && !isBegun
