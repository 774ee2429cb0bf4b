import type { SubscribeOptions, TopologyEntry } from '../contracts/event-bus.ts'
import type { BlackBox, WorkInFlight } from '../contracts/registry.ts'
import { HeddleError } from '../errors/catalogue.ts'
import type { WireError } from '../errors/wire.ts'
import { type EventFrame, WANTS_REPLY } from '../frames/event-frame.ts'
import { ask } from './asking.ts'
import type { Asker, Consumer, Delivery, EventHost, HubEvent, Seat } from './consumer.ts'
import { Fifo } from './fifo.ts'
import { Quarantine } from './quarantine.ts'
import { QueueBudget } from './queue-budget.ts'
import { type RecordLog, Records } from './records.ts'
import { retryDelayMs } from './retry.ts'
import { Topology } from './topology.ts'

/** Lane deaths after which an event that was there each time is taken for their cause. */
export const POISON_DEATHS = 3
/** Subscribers that are set aside may keep this share of the queue waiting, all together; then their events are refused. */
const PAUSED_SHARE = 0.5
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
  readonly #options: HubOptions
  readonly #topology = new Topology()
  /** Under way, by delivery id. */
  readonly #inFlight = new Map<number, Delivery>()
  /** Consumers with deliveries that wait for room. */
  readonly #waiting = new Set<Consumer>()
  /** Those whose turn has come behind their key. Empty but while `#advance` runs. */
  readonly #advancing: Delivery[] = []
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #sweepTimer: NodeJS.Timeout
  #nextDeliveryId = 1
  readonly #budget: QueueBudget
  readonly #quarantine: Quarantine
  #closed = false

  constructor(options: HubOptions) {
    this.#options = options
    this.records = new Records(options.log)
    this.#budget = new QueueBudget(options.maxQueue)
    this.#quarantine = new Quarantine(
      (delivery, seat) => this.#send(delivery, seat),
      (delivery) => this.#finish(delivery),
      options.onQuarantine,
    )
    this.#sweepTimer = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  /** Deliveries that are accepted and not finished. */
  get pending(): number {
    return this.#budget.deliveries
  }

  /** True when the queue is so full that nothing new should be begun. */
  get isCrowded(): boolean {
    return this.#budget.isCrowded
  }

  // ── topology ──────────────────────────────────────────────────────────────

  subscribe(event: string, group: string, options: SubscribeOptions, seat: Seat): () => void {
    const consumer = this.#topology.addSeat(event, group, options, seat)
    this.#pump()
    return () => {
      if (!this.#topology.removeSeat(consumer, seat)) return
      this.#leave(consumer)
    }
  }

  /** Its last seat left by its own will: nobody wants what still waits, or comes back to wait. */
  #leave(consumer: Consumer): void {
    consumer.isGone = true
    this.#waiting.delete(consumer)
    for (let next = consumer.waiting.shift(); next !== undefined; next = consumer.waiting.shift()) this.#finish(next)
  }

  /** A thread gets nothing more. What it has, it may finish. */
  hostLeaving(host: EventHost): void {
    this.#topology.removeHost(host)
  }

  /**
   * A thread is gone: its seats leave, and what it had not answered goes to the others.
   * @param unread deliveries that it never began: they are under no suspicion
   * @param blackBox what is known of its death; null when it ended because it was told to
   */
  hostGone(host: EventHost, unread: ReadonlySet<number>, blackBox: BlackBox | null): void {
    this.#topology.removeHost(host)
    for (const [id, delivery] of this.#inFlight) {
      if (delivery.seat?.host !== host) continue
      this.#inFlight.delete(id)
      this.#quarantine.ended(delivery)
      if (delivery.onlySeat !== null) {
        this.#finish(delivery)
        this.#tellAsker(delivery, 'The thread that handled the request has died')
        continue
      }
      if (blackBox !== null && !unread.has(id)) {
        delivery.deaths++
        delivery.blackBox = blackBox
      }
      if (delivery.deaths >= POISON_DEATHS) this.#fail(delivery, poisonMessage(delivery), true)
      else {
        delivery.seat = null
        this.#enqueue(delivery, true)
      }
    }
    this.#pump()
  }

  /** Subscribers that no thread has any more, since its code is new, leave; what waits for them has nobody to want it. */
  dropVacant(): void {
    for (const consumer of this.#topology.vacant()) {
      const { size } = consumer.waiting
      if (size > 0)
        this.#options.log('WARNING', `${consumer.group} is gone: ${size} events that waited for it are dropped`)
      this.#topology.drop(consumer)
      this.#leave(consumer)
    }
  }

  /** What a thread has been given and has not answered, the oldest first. */
  inFlightAt(host: EventHost, unread: ReadonlySet<number>): WorkInFlight[] {
    const nowMs = Date.now()
    const works: WorkInFlight[] = []
    for (const [id, { seat, event, deadlineMs, consumer }] of this.#inFlight) {
      if (seat?.host !== host || unread.has(id)) continue
      const forMs = nowMs - (deadlineMs - consumer.timeoutMs)
      works.push({ kind: 'event', name: event.event, plugin: seat.plugin, id: event.id, for_ms: forMs })
    }
    return works
  }

  /** Lets the events of a plugin's subscribers wait, or go on. */
  pausePlugin(plugin: string, isPaused: boolean): void {
    this.#topology.pause(plugin, isPaused)
    if (!isPaused) this.#pump()
  }

  topology(): Record<string, TopologyEntry> {
    return this.#topology.entries()
  }

  // ── publishing ────────────────────────────────────────────────────────────

  /** Takes an event. @throws EVENT_BUS_FULL */
  publish(event: EventFrame, origin: EventHost | null, asker: Asker | null = null): void {
    if (this.#closed) throw new HeddleError('EVENT_BUS_FULL', 'The service is shutting down and takes no more events')
    const topic = this.#topology.topic(event.event)
    const { consumers } = topic
    if (consumers.length > 0) {
      this.#budget.check(consumers.length, event.payload.length, event.parentId === null && event.requestId === null)
      if (this.#topology.hasPaused) this.#checkPaused(consumers)
    }
    topic.fireCount++
    topic.emitters.add(event.emitter)
    this.records.published(event, topic.subscribers, origin)
    if (consumers.length === 0) return
    const taken = event as HubEvent
    taken.expiresMs = event.ttlMs === 0 ? 0 : Date.now() + event.delayMs + event.ttlMs
    for (let n = 0; n < consumers.length; n++) {
      const consumer = consumers[n]!
      if (consumer.broadcast)
        for (const seat of consumer.seats) this.#accept(consumer, taken, event.delayMs, seat, asker)
      else this.#accept(consumer, taken, event.delayMs, null, asker)
    }
  }

  /** Publishes and resolves with the first object that a subscriber returns. */
  request(event: EventFrame, origin: EventHost | null, timeoutMs: number): Promise<string> {
    if (!this.#topology.hasConsumer(event.event)) {
      return Promise.reject(new HeddleError('EVENT_BUS_NO_SUBSCRIBER', `Nobody subscribes to ${event.event}`))
    }
    return ask(event.event, timeoutMs, this.#timers, (asker) => this.publish(event, origin, asker))
  }

  /** @throws EVENT_BUS_FULL when subscribers that are set aside keep too much waiting: nobody else's room may go with it */
  #checkPaused(consumers: readonly Consumer[]): void {
    const paused = consumers.find(({ isPaused }) => isPaused)
    if (paused === undefined) return
    const pending = this.#topology.pausedPending
    if (pending < this.#options.maxQueue * PAUSED_SHARE) return
    throw new HeddleError('EVENT_BUS_FULL', `${paused.group} is set aside, and ${pending} events wait for such`)
  }

  #accept(consumer: Consumer, event: HubEvent, delayMs: number, onlySeat: Seat | null, asker: Asker | null): void {
    this.#budget.take(event)
    consumer.pending++
    if (asker !== null) asker.open++
    const delivery: Delivery = {
      id: 0,
      consumer,
      event,
      attempt: 1,
      deaths: 0,
      blackBox: null,
      isBegun: false,
      seat: null,
      onlySeat,
      deadlineMs: 0,
      asker,
    }
    if (delayMs > 0) this.#later(delayMs, () => this.#admit(delivery))
    else this.#admit(delivery)
  }

  /** Behind those of the same key, if there are any. */
  #admit(delivery: Delivery): void {
    const { key } = delivery.event
    if (key !== null) {
      const behind = delivery.consumer.keyed.get(key)
      if (behind !== undefined) {
        behind.push(delivery)
        return
      }
      delivery.consumer.keyed.set(key, new Fifo())
    }
    this.#enqueue(delivery, false)
  }

  #enqueue(delivery: Delivery, first: boolean): void {
    const { consumer } = delivery
    if (consumer.isGone) return this.#finish(delivery)
    if (delivery.deaths > 0) return this.#quarantine.add(delivery)
    if (!first && consumer.waiting.size === 0 && this.#dispatch(delivery)) return
    if (first) consumer.waiting.unshift(delivery)
    else consumer.waiting.push(delivery)
    this.#waiting.add(consumer)
  }

  /** Gives a delivery to a thread. False when none has room. */
  #dispatch(delivery: Delivery): boolean {
    const { consumer, event } = delivery
    if (delivery.onlySeat !== null && !consumer.seats.includes(delivery.onlySeat)) {
      // It has left, or its thread has died: nobody else is to get this, and nobody is to wait behind it.
      this.#finish(delivery)
      this.#tellAsker(delivery, 'The thread that was to handle the request is gone')
      return true
    }
    const seat = delivery.onlySeat ?? consumer.pickSeat()
    if (seat === null || seat.isPaused || !seat.host.hasRoom) return false
    // What was begun in time is brought to its end, retries included.
    if (event.expiresMs !== 0 && !delivery.isBegun && event.expiresMs < Date.now()) {
      this.#finish(delivery)
      return true
    }
    return this.#send(delivery, seat)
  }

  /** False when it was not taken after all. */
  #send(delivery: Delivery, seat: Seat): boolean {
    const { consumer, event } = delivery
    const id = this.#nextDeliveryId
    this.#nextDeliveryId = (id + 1) & 0x7fffffff
    event.a = seat.local
    event.b = delivery.asker === null ? delivery.attempt : delivery.attempt | WANTS_REPLY
    if (!seat.host.send(id, event)) return false
    delivery.id = id
    delivery.isBegun = true
    delivery.seat = seat
    delivery.deadlineMs = Date.now() + consumer.timeoutMs
    this.#inFlight.set(id, delivery)
    return true
  }

  /** A thread has room again (or has just come up). */
  #pump(): void {
    for (const consumer of this.#waiting) {
      const { waiting } = consumer
      while (waiting.size > 0 && this.#dispatch(waiting.peek()!)) waiting.shift()
      if (waiting.size === 0) this.#waiting.delete(consumer)
    }
    this.#quarantine.pump()
  }

  // ── answers of the threads ────────────────────────────────────────────────

  delivered(deliveryId: number): void {
    const delivery = this.#take(deliveryId)
    if (delivery !== undefined) {
      if (delivery.asker !== null) delivery.asker.onlyFailures = false
      this.#finish(delivery)
    }
    if (this.#waiting.size > 0 || this.#quarantine.isWanted) this.#pump()
  }

  /** Delivered, and the subscriber returned an object to one who asked for it. */
  deliveryReply(deliveryId: number, reply: string): void {
    this.#inFlight.get(deliveryId)?.asker?.reply(reply)
    this.delivered(deliveryId)
  }

  deliveryFailed(deliveryId: number, error: WireError): void {
    const delivery = this.#take(deliveryId)
    if (delivery !== undefined) this.#fail(delivery, error.message, false)
    if (this.#waiting.size > 0 || this.#quarantine.isWanted) this.#pump()
  }

  #take(deliveryId: number): Delivery | undefined {
    const delivery = this.#inFlight.get(deliveryId)
    if (delivery === undefined) return undefined
    this.#inFlight.delete(deliveryId)
    if (delivery.deaths > 0) this.#quarantine.ended(delivery)
    return delivery
  }

  #finish(delivery: Delivery): void {
    this.#budget.give(delivery.event)
    delivery.consumer.pending--
    if (delivery.asker !== null) delivery.asker.open--
    const { key } = delivery.event
    if (key === null) return
    const { keyed } = delivery.consumer
    const next = keyed.get(key)?.shift()
    if (next === undefined) keyed.delete(key)
    else this.#advance(next)
  }

  /** One after another, never one inside the other: a queue of expired events of one key would overflow the stack. */
  #advance(next: Delivery): void {
    this.#advancing.push(next)
    if (this.#advancing.length > 1) return
    try {
      for (let n = 0; n < this.#advancing.length; n++) this.#enqueue(this.#advancing[n]!, false)
    } finally {
      this.#advancing.length = 0
    }
  }

  #fail(delivery: Delivery, error: string, isFinal: boolean): void {
    const { consumer, event, attempt } = delivery
    if (!isFinal && attempt <= consumer.retries) {
      delivery.attempt++
      delivery.seat = null
      return this.#later(retryDelayMs(attempt, consumer.backoffMs), () => this.#enqueue(delivery, false))
    }
    this.records.failed({
      event,
      group: consumer.group,
      subscriber: delivery.seat?.plugin ?? consumer.group,
      error,
      attempts: attempt,
      blackBox: isFinal ? delivery.blackBox : null,
    })
    // Only now it is acknowledged.
    this.#finish(delivery)
    this.#tellAsker(delivery, error)
  }

  /** Nobody is left who might reply. */
  #tellAsker({ asker }: Delivery, error: string): void {
    if (asker?.open === 0 && asker.onlyFailures) asker.failed(error)
  }

  #sweep(): void {
    const nowMs = Date.now()
    for (const [id, delivery] of this.#inFlight) {
      if (delivery.deadlineMs > nowMs) continue
      this.#inFlight.delete(id)
      delivery.seat?.host.abandon(id)
      this.#quarantine.ended(delivery)
      if (delivery.seat?.host.isQuarantine) this.#options.onQuarantineUsed()
      this.#fail(delivery, `The subscriber did not finish within ${delivery.consumer.timeoutMs} ms`, false)
    }
    if (this.#waiting.size > 0 || this.#quarantine.isWanted) this.#pump()
  }

  #later(delayMs: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      run()
    }, delayMs)
    this.#timers.add(timer)
  }

  /** Delivers a dead letter to its subscriber once more, and to nobody else. False when there is none, or nobody to take it. */
  replayDeadLetter(id: string): boolean {
    const letter = this.records.deadLetter(id)
    if (letter === undefined) return false
    const consumer = this.#topology.consumer(letter.event.event, letter.group)
    if (consumer === undefined) return false
    this.records.deleteDeadLetter(id)
    this.#accept(consumer, { ...letter.event, expiresMs: 0 }, 0, null, null)
    return true
  }

  /** Takes nothing more. What is under way may still be answered. */
  close(): void {
    this.#closed = true
    clearInterval(this.#sweepTimer)
    for (const timer of this.#timers) clearTimeout(timer)
  }
}

function poisonMessage({ blackBox }: Delivery): string {
  const where = blackBox?.guilty?.line ? ` (${blackBox.guilty.line})` : ''
  return `The thread died ${POISON_DEATHS} times while it handled this event: ${blackBox?.message}${where}`
}
