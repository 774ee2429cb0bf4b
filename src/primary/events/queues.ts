// The queues of the hub: deliveries waiting for room, for a tool, for their time or for an answer, and open requests.

import type { LostReason } from '../../contracts/event-bus.ts'
import type { WorkInFlight } from '../../contracts/registry.ts'
import { Numbered } from '../../core/collections/numbered.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { Clock, Timer } from '../../core/schedule/clock.ts'
import type { Consumer, Delivery, DeliveryQueue, Requester, SubscriberInstance, SubscriberThread } from './consumer.ts'
import { become } from './delivery-state.ts'

/** The queues with deliveries waiting for room. */
export class WaitingQueues {
  readonly #queues = new Set<DeliveryQueue>()

  get isEmpty(): boolean {
    return this.#queues.size === 0
  }

  /** True if this holds for the next delivery of a queue. */
  someNext(isMeant: (delivery: Delivery) => boolean): boolean {
    return [...this.#queues].some(({ waiting }) => {
      const next = waiting.peek()
      return next !== undefined && isMeant(next)
    })
  }

  /** The delivery is ready, and no thread has room. */
  push(delivery: Delivery): void {
    delivery.queue.waiting.push(delivery)
    this.#queues.add(delivery.queue)
  }

  /** Puts a delivery that has lost its thread ahead of the waiting ones. */
  unshift(delivery: Delivery): void {
    become(delivery, 'ready')
    delivery.queue.waiting.unshift(delivery)
    this.#queues.add(delivery.queue)
  }

  /** Takes out the matching deliveries. */
  takeIf(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken: Delivery[] = []
    for (const queue of this.#queues) {
      taken.push(...queue.waiting.takeIf(isWanted))
      if (queue.waiting.size === 0) this.#queues.delete(queue)
    }
    return taken
  }

  /** Takes out all waiting deliveries of one consumer. */
  takeOf(consumer: Consumer): Delivery[] {
    const taken: Delivery[] = []
    for (const queue of this.#queues) {
      if (queue.consumer !== consumer) continue
      this.#queues.delete(queue)
      taken.push(...queue.waiting.takeIf(() => true))
    }
    return taken
  }

  /**
   * Offers the deliveries queue by queue, in order.
   * @param dispatch returns false when a delivery has no room
   * @param answered the queue with room for another delivery, and the thread with room: once that is full again, no other queue has more room than before
   */
  pump(
    dispatch: (delivery: Delivery) => boolean,
    answered?: { readonly queue: DeliveryQueue; readonly thread: SubscriberThread },
  ): void {
    for (const queue of this.#queues) {
      this.offer(queue, dispatch)
      if (answered === undefined || answered.thread.hasRoom) continue
      if (this.#queues.has(answered.queue)) this.offer(answered.queue, dispatch)
      return
    }
  }

  /** Offers the deliveries of one queue. */
  offer(queue: DeliveryQueue, dispatch: (delivery: Delivery) => boolean): void {
    // One that ends at once lets the next of its key begin, which is offered by this loop.
    if (queue.isOffered) return
    queue.isOffered = true
    try {
      for (let next = queue.waiting.peek(); next !== undefined; next = queue.waiting.peek()) {
        const { waiting } = queue
        if (!dispatch(next)) {
          // Of those that take turns, one whose limit is used up holds up no other.
          if (queue.waiting.peek() === next) break
          continue
        }
        if (queue.waiting === waiting) waiting.shift()
        // From now on they take turns.
        else queue.waiting.takeIf((each) => each === next)
      }
    } finally {
      queue.isOffered = false
    }
    if (queue.waiting.size === 0) this.#queues.delete(queue)
  }
}

/** Deliveries that are being begun, at most. */
const BEGINNING_MAX = 32

/** Deliveries whose stores begin them. Each takes the place of one in flight. */
export class Beginnings {
  readonly #all = new Set<Delivery>()

  get hasRoom(): boolean {
    return this.#all.size < BEGINNING_MAX
  }

  get isEmpty(): boolean {
    return this.#all.size === 0
  }

  add(delivery: Delivery): void {
    become(delivery, 'beginning')
    delivery.queue.inFlight++
    this.#all.add(delivery)
  }

  items(): Iterable<Delivery> {
    return this.#all
  }

  /** @returns false if it was taken out meanwhile */
  take(delivery: Delivery): boolean {
    if (!this.#all.delete(delivery)) return false
    delivery.queue.inFlight--
    return true
  }

  /** Takes out the matching deliveries. */
  takeIf(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    return [...this.#all].filter((delivery) => isWanted(delivery) && this.take(delivery))
  }
}

/** First and longest pause before a retry during an outage of a tool, milliseconds. */
const AWAY_MS = 250
const AWAY_MAX_MS = 5000

/** Consumers during an outage of their tools, each until a delivery no longer fails of it. */
export class Outages {
  readonly #clock: Clock
  readonly #consumers = new Set<Consumer>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  began(consumer: Consumer): void {
    if (consumer.outage !== null) return
    consumer.outage = { delayMs: AWAY_MS, atMs: this.#clock.steadyMs() + AWAY_MS, isDue: false }
    this.#consumers.add(consumer)
  }

  /** A delivery was sent: the next follows after a longer pause. */
  tried({ outage }: Consumer): void {
    if (outage === null) return
    outage.isDue = false
    outage.delayMs = Math.min(AWAY_MAX_MS, 2 * outage.delayMs)
    outage.atMs = this.#clock.steadyMs() + outage.delayMs
  }

  over(consumer: Consumer): void {
    consumer.outage = null
    this.#consumers.delete(consumer)
  }

  /** Must be called regularly. */
  look(): void {
    const nowMs = this.#clock.steadyMs()
    for (const consumer of this.#consumers) {
      if (consumer.isGone) this.over(consumer)
      else if (consumer.outage!.atMs <= nowMs) consumer.outage!.isDue = true
    }
  }
}

/** Longest pause before a retry. */
export const RETRY_MAX_DELAY_MS = 300_000

/**
 * Pause after attempt number `attempt`: exponential, with full jitter.
 * Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function retryDelayMs(attempt: number, backoffMs: number, random: () => number): number {
  return random() * Math.min(RETRY_MAX_DELAY_MS, backoffMs * 2 ** (attempt - 1))
}

/** Deliveries waiting for their time: delayed ones, and those between two attempts. */
export class DelayQueue {
  readonly #clock: Clock
  /** Deliveries in memory before their first attempt, or between two, with their timers. */
  readonly #inMemory = new Map<Delivery, Timer>()
  /** Stored deliveries between two attempts: a broker or the event store has them as well. */
  readonly #retries = new Map<Delivery, Timer>()
  #isDraining = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** True while the process ends: stored deliveries are handed back to their store. */
  get isDraining(): boolean {
    return this.#isDraining
  }

  /** Waits for the first attempt. */
  delayFirst(delivery: Delivery, delayMs: number, begin: (delivery: Delivery) => void): void {
    become(delivery, 'later')
    this.#delay(this.#inMemory, delivery, delayMs, begin)
  }

  /**
   * Waits for the next attempt.
   * @returns false when the process ends and the delivery goes back to its store
   */
  delayRetry(delivery: Delivery, delayMs: number, again: (delivery: Delivery) => void): boolean {
    const isStored = delivery.event.source !== null
    if (isStored && this.#isDraining) return false
    become(delivery, 'later')
    this.#delay(isStored ? this.#retries : this.#inMemory, delivery, delayMs, again)
    return true
  }

  #delay(waiting: Map<Delivery, Timer>, delivery: Delivery, delayMs: number, run: (delivery: Delivery) => void): void {
    const timer = this.#clock.due(delayMs, () => {
      waiting.delete(delivery)
      run(delivery)
    })
    waiting.set(delivery, timer)
  }

  /** Takes out the stored deliveries for handover. Later retries of stored events are refused. */
  takeForHandover(): Delivery[] {
    this.#isDraining = true
    return this.#take(this.#retries, () => true)
  }

  /** Takes out the matching deliveries. */
  takeIf(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    return [this.#retries, this.#inMemory].flatMap((waiting) => this.#take(waiting, isWanted))
  }

  #take(waiting: Map<Delivery, Timer>, isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken = [...waiting.keys()].filter(isWanted)
    for (const delivery of taken) {
      this.#clock.cancel(waiting.get(delivery))
      waiting.delete(delivery)
    }
    return taken
  }

  *items(): Iterable<Delivery> {
    yield* this.#retries.keys()
    yield* this.#inMemory.keys()
  }

  close(): void {
    for (const timer of [...this.#retries.values(), ...this.#inMemory.values()]) this.#clock.cancel(timer)
  }
}

/** Longest time until a stalled thread is noticed, milliseconds. */
const STILL_SEEN_MS = 100
/** Ids start again above this number. */
const LAST_ID = 0x7fffffff

/** Deliveries sent to threads and not answered. */
export class UnansweredDeliveries {
  readonly #clock: Clock
  readonly #ended: (delivery: Delivery) => void
  readonly #byId = new Numbered<Delivery>()
  #nextId = 1

  /** @param ended called with each that is taken out */
  constructor(clock: Clock, ended: (delivery: Delivery) => void) {
    this.#clock = clock
    this.#ended = ended
  }

  nextId(): number {
    const id = this.#nextId
    this.#nextId = (id + 1) & LAST_ID
    return id
  }

  add(delivery: Delivery, id: number, instance: SubscriberInstance): void {
    delivery.id = id
    become(delivery, 'sent')
    delivery.instance = instance
    delivery.queue.inFlight++
    this.#byId.set(id, delivery)
    delivery.startedMs = this.#beginTime(delivery, instance)
  }

  /** Begins the time of its attempt anew. */
  begin(id: number): void {
    const delivery = this.#byId.get(id)
    if (delivery !== undefined) this.#beginTime(delivery, delivery.instance!)
  }

  #beginTime(delivery: Delivery, { thread }: SubscriberInstance): number {
    const nowMs = this.#clock.steadyMs()
    delivery.deadlineMs = nowMs - thread.heldMs + delivery.consumer.timeoutMs
    return nowMs
  }

  /** Tells running handlers that they should end. */
  lose(reason: LostReason, isLost: (delivery: Delivery) => boolean): void {
    for (const delivery of this.#byId.items()) if (isLost(delivery)) delivery.instance!.thread.lose(delivery.id, reason)
  }

  get count(): number {
    return this.#byId.size
  }

  items(): Iterable<Delivery> {
    return this.#byId.items()
  }

  get(id: number): Delivery | undefined {
    return this.#byId.get(id)
  }

  /** @param isBegun false when its thread has not begun it */
  take(id: number, isBegun = true): Delivery | undefined {
    const delivery = this.#byId.take(id)
    if (delivery === undefined) return undefined
    if (isBegun) delivery.isBegun = true
    delivery.queue.inFlight--
    this.#ended(delivery)
    return delivery
  }

  /** Takes out all deliveries of a thread, oldest first. @param unread those that it has not begun */
  takeFrom(thread: SubscriberThread, unread: ReadonlySet<number>): Delivery[] {
    return this.#idsOf(({ instance }) => instance?.thread === thread).map((id) => this.take(id, !unread.has(id))!)
  }

  /** Returns the numbers of matching deliveries, oldest first. */
  matching(isWanted: (delivery: Delivery) => boolean): number[] {
    return this.#idsOf(isWanted)
  }

  /** Returns overdue deliveries, oldest first, except in stalled threads: the cause of the stall is not known yet. */
  late(nowMs: number): number[] {
    return this.#idsOf(({ deadlineMs, instance }) => {
      const { isStill, heldMs } = instance!.thread
      return deadlineMs + heldMs + STILL_SEEN_MS <= nowMs && !isStill
    })
  }

  #idsOf(isWanted: (delivery: Delivery) => boolean): number[] {
    return this.#byAge(this.#byId.numbers().filter((id) => isWanted(this.#byId.get(id)!)))
  }

  /** Oldest first. */
  #byAge(ids: number[]): number[] {
    const age = (id: number): number => (this.#nextId - id) & LAST_ID
    return ids.sort((a, b) => age(b) - age(a))
  }

  countOf(consumer: Consumer): number {
    let count = 0
    for (const delivery of this.#byId.items()) if (delivery.consumer === consumer) count++
    return count
  }

  /** Deliveries of a thread for the log and the black box, oldest first. */
  worksAt(thread: SubscriberThread, unread: ReadonlySet<number>): WorkInFlight[] {
    const nowMs = this.#clock.steadyMs()
    const works: WorkInFlight[] = []
    for (const id of this.#byAge(this.#byId.numbers())) {
      const { instance, event, deadlineMs, consumer } = this.#byId.get(id)!
      if (instance?.thread !== thread || unread.has(id)) continue
      const forMs = nowMs - (deadlineMs + thread.heldMs - consumer.timeoutMs)
      works.push({ kind: 'event', name: event.event, plugin: instance.plugin, id: event.id, for_ms: forMs })
    }
    return works
  }
}

/** A delivery has ended: one fewer may reply. @param fault why it has not replied; null if handled */
export function replySettled(requester: Requester, fault: string | null): void {
  requester.open--
  if (requester.open === 0 && requester.onlyFailures && fault !== null) requester.failed(fault)
}

/**
 * Publishes an event and resolves with the first object a subscriber returns, as JSON.
 * @param publish accepts the event, or throws
 * @param timers holds the timer of the time limit while the request is open, so that closing the hub can clear it
 */
export function awaitReply(
  clock: Clock,
  event: string,
  timeoutMs: number,
  timers: Set<Timer>,
  publish: (requester: Requester) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeoutMs, () => {
      timers.delete(timer)
      reject(new HeddleError('EVENT_BUS_REQUEST_TIMEOUT', `Nobody replied to ${event} within ${timeoutMs} ms`))
    })
    timers.add(timer)
    const settle = (): void => {
      clock.cancel(timer)
      timers.delete(timer)
    }
    try {
      publish({
        open: 0,
        onlyFailures: true,
        reply: (json) => {
          settle()
          resolve(json)
        },
        failed: (error) => {
          settle()
          reject(new HeddleError('EVENT_HANDLER_FAILED', error))
        },
      })
    } catch (error) {
      settle()
      reject(error)
    }
  })
}
