import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { DeliverySpan, TraceContext, TraceScope } from '../../contracts/tracing.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { SUBSCRIBER_DEFAULTS } from '../../core/schemas/event-contracts.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'

/** A thread that runs subscribers. */
export interface SubscriberThread {
  /** By which the thread names itself in what it stores. */
  readonly threadId: number
  /** True for a lane that gets only deliveries that threads died of. */
  readonly isQuarantine: boolean
  /** Deliveries that it has not answered yet. */
  readonly deliveriesInFlight: number
  /** True while its loop stands still. One of its deliveries may be the cause, so none is taken from it before it goes on or dies. */
  readonly isStill: boolean
  /** How long a debugger has been attached while it ran, milliseconds: no delivery is late because of that. */
  readonly heldMs: number
  /** True when it takes one more delivery. */
  readonly hasRoom: boolean
  /** @returns false when it could not take the delivery after all */
  send(deliveryId: number, frame: EventFrame): boolean
  /** Gives a delivery up: it no longer counts as in flight, even if its handler still runs. */
  abandon(deliveryId: number): void
}

/** A publisher that waits for the first object that a subscriber returns. */
export interface Requester {
  /** Deliveries that may still reply. */
  open: number
  /** True while every delivery that has ended has failed. */
  onlyFailures: boolean
  reply(json: string): void
  /** Told when all deliveries have failed. */
  failed(error: string): void
}

/** A delivery that has failed for good. */
export interface FailedDelivery {
  event: HubEvent
  group: string
  subscriber: string
  error: string
  attempts: number
  /** The report of the last death, when threads died of the delivery. */
  blackBox: BlackBox | null
  /** True when what follows with its key waits for the letter. */
  parks: boolean
  /** The trace that the listeners' work belongs to; null while tracing is off. */
  trace: TraceScope | null
}

/** Where an event comes from, when the hub's memory alone does not have it: a broker, or the durable log. Told of each of its deliveries here. */
export interface EventSource {
  /** A broker bounds what it gives, keeps no order, and may give it to another process. */
  readonly isBroker: boolean
  /** The hub has accepted it, and not begun with it. */
  accepted?(delivery: Delivery): void
  /** False while no thread may begin it. */
  mayBegin?(delivery: Delivery): boolean
  /** A thread has it that is the first to have it. */
  begun?(delivery: Delivery): void
  /**
   * Told of the next attempt before the pause.
   * @param dueMs when it is made, milliseconds since the epoch
   * @param mayLeave nothing waits behind it
   * @returns true when it waits for its time elsewhere: it leaves the hub
   */
  retrying?(delivery: Delivery, dueMs: number, mayLeave: boolean): boolean
  /** Told before a delivery that a thread has had waits for another. @returns true when it waits elsewhere: it leaves the hub */
  leaving?(delivery: Delivery): boolean
  /** Stores a dead letter. Resolves when it is stored, however long that takes. */
  storeDeadLetter(delivery: Delivery, letter: FailedDelivery): Promise<void>
  /** @param isDone true when the delivery was handled or is a dead letter; false when nobody in this process takes it any more */
  ended(delivery: Delivery, isDone: boolean): void
}

/** How an attempt has failed: only after `once` may another follow. */
export type Failure = 'once' | 'unrecoverable' | 'poison'

/** What the durable log, or a broker, knows of one delivery of an event. */
export interface Share {
  readonly group: string
  /** Number of the next attempt. */
  readonly attempt: number
  /** Threads and processes that died of it. */
  readonly deaths: number
  /** When the attempt is due, milliseconds since the epoch; not above 0: now. */
  readonly dueMs: number
  /** Why the attempt before has failed; empty before the first. */
  readonly error: string
  /** Set when this attempt has failed already, for this reason. */
  readonly failure?: Failure | null
  /** True when a thread has had it: it does not expire any more. */
  readonly isBegun?: boolean
  /** The report of the last of the deaths. */
  readonly blackBox?: BlackBox | null
  /** Of a broker: the instance that had it last, the only one that may get it when it is a broadcast; null: any may. */
  readonly instance?: SubscriberInstance | null
  /** Set when the delivery began elsewhere and is traced. */
  readonly span?: DeliverySpan | null
}

/** One subscriber in one thread. */
export interface SubscriberInstance {
  readonly thread: SubscriberThread
  /** Its number in that thread. */
  readonly subscriberIndex: number
  readonly plugin: string
  readonly identity: string
  /** True while its plugin is set aside: its events wait. */
  isPaused: boolean
  /** True when it has subscribed after its plugin had booted: nothing is kept for it beyond its thread. */
  readonly isTemporary?: boolean
}

/** Told who subscribes: the durable log keeps events for groups that are not here. */
export interface GroupWatcher {
  /** True when what is stored waits for the group while it is not here. */
  isKnown(event: string, group: string): boolean
  /** An instance of the group is here, which is no broadcast. */
  joined(event: string, group: string): void
  /** The last one is gone. @param isForGood it has unsubscribed */
  left(event: string, group: string, isForGood: boolean): void
  /** Who gets an event has changed. */
  changed?(event: string): void
}

/**
 * An event that the hub has accepted. Its `subscriber`, `attempt` and `trace` are set again for each delivery: a thread copies the event,
 * or these fields, before it returns from `send`. Its payload is a string of bytes (see EventFrame).
 */
export interface HubEvent extends EventFrame {
  /** When it expires, milliseconds since the epoch; 0: never. */
  expiresMs: number
  /** The span that published. */
  producer: TraceContext
  /** Null: it is in memory alone. */
  source: EventSource | null
  requester: Requester | null
}

/** @param frame with bytes as its payload; it belongs to the hub from now on */
export function hubEventOf(
  frame: EventFrame,
  expiresMs: number,
  source: EventSource | null,
  requester: Requester | null = null,
): HubEvent {
  const event = frame as HubEvent
  event.producer = frame.trace
  event.expiresMs = expiresMs
  event.source = source
  event.requester = requester
  return event
}

/** One event on its way to one consumer (or, broadcast, to one instance of it). */
export interface Delivery {
  /** New for each attempt: a late answer to an attempt that was given up finds no delivery. */
  id: number
  readonly consumer: Consumer
  readonly event: HubEvent
  attempt: number
  /** Lanes that died while they handled it. After the first death it is a suspect and goes to the quarantine lane. */
  deaths: number
  /** The report of the last of these deaths. */
  blackBox: BlackBox | null
  /** When its first attempt here is due, milliseconds since the epoch; 0: at once. */
  dueMs: number
  /** True when a thread has had it. */
  isBegun: boolean
  /** True when its last attempt has failed. */
  isGivenUp: boolean
  /** Set from its first attempt on, when it is traced. */
  span: DeliverySpan | null
  /** Its place among the open spans of this process; -1 while it is not there. */
  spanIndex: number
  /** The instance that handles it now. */
  instance: SubscriberInstance | null
  readonly queue: DeliveryQueue
  /** When the attempt counts as failed, milliseconds since the epoch, less the time for which a debugger had been attached by then. */
  deadlineMs: number
  /** Why the attempt before has failed; empty before the first. */
  error: string
  /** True when an attempt has failed here. */
  isTried: boolean
}

/** @param share null: nothing has been done with it */
export function deliveryOf(queue: DeliveryQueue, event: HubEvent, share: Share | null): Delivery {
  const { attempt, deaths, dueMs, error, blackBox = null, instance = null, span = null } = share ?? NEW
  return {
    id: 0,
    consumer: queue.consumer,
    queue,
    event,
    attempt,
    deaths,
    blackBox,
    dueMs: Math.max(0, dueMs),
    isBegun: share?.isBegun ?? (attempt > 1 || deaths > 0),
    isGivenUp: false,
    span,
    spanIndex: -1,
    instance,
    deadlineMs: 0,
    error,
    isTried: false,
  }
}

const NEW: Omit<Share, 'group'> = { attempt: 1, deaths: 0, dueMs: 0, error: '' }

/** A tool that a consumer needs is away: of its deliveries one at a time is tried. */
export interface Outage {
  delayMs: number
  /** When the next one is tried, by the steady clock. */
  atMs: number
  isDue: boolean
}

/** The deliveries that wait for a consumer. Those of a broadcast wait per instance, so that no instance delays another. */
export class DeliveryQueue {
  readonly consumer: Consumer
  /** The only instance that may get these deliveries; null: any instance may. */
  readonly instance: SubscriberInstance | null
  /** Deliveries that no thread had room for. */
  readonly waiting = new Fifo<Delivery>()
  /** Keys that are being handled, each with the deliveries that wait for it. */
  readonly keyed = new Map<string, Fifo<Delivery>>()
  /** Deliveries that threads have and have not answered. */
  inFlight = 0

  constructor(consumer: Consumer, instance: SubscriberInstance | null) {
    this.consumer = consumer
    this.instance = instance
  }

  /** False while as many of its deliveries are under way as its subscriber takes at a time, and while a tool that it needs is away. */
  get hasRoom(): boolean {
    const { outage, concurrency } = this.consumer
    return this.inFlight < concurrency && (outage === null || outage.isDue)
  }
}

/** A logical subscriber: all instances of one group on one event. Each event goes to one of them, a broadcast to all. */
export class Consumer {
  readonly event: string
  readonly group: string
  retries = 0
  backoffMs = 0
  timeoutMs = 0
  broadcast = false
  /** With a key, what follows a dead letter waits for it. */
  parks = false
  /** Deliveries of one queue that are under way at a time, at most. */
  concurrency = Number.POSITIVE_INFINITY
  readonly instances: SubscriberInstance[] = []
  /** Its instances in the quarantine lane, for suspects. */
  readonly quarantineInstances: SubscriberInstance[]
  /** True when the last quarantine lane did not have this subscriber: its suspects are tried elsewhere. */
  lacksQuarantine = false
  /** Deliveries that are accepted and not finished, and the bytes of their payloads. */
  pending = 0
  pendingBytes = 0
  /** Deliveries that have ended. */
  ended = 0
  /** True when its last instance has unsubscribed: a retry, a delayed delivery or the next one of a key is dropped. */
  isGone = false
  /** All its instances have subscribed after their plugins had booted. */
  isTemporary = true
  /** Set while a tool that it needs is away. */
  outage: Outage | null = null
  readonly queue: DeliveryQueue = new DeliveryQueue(this, null)
  readonly #instanceQueues = new WeakMap<SubscriberInstance, DeliveryQueue>()
  /** Several subscribers of one thread are in the group: they take turns. */
  #isShared = false
  #turn = 0

  constructor(event: string, group: string, options: SubscribeOptions, quarantineInstances: SubscriberInstance[]) {
    this.event = event
    this.group = group
    this.quarantineInstances = quarantineInstances
    this.setOptions(options)
  }

  /** New code may have other options: the instance that came last decides. */
  setOptions(options: SubscribeOptions): void {
    this.retries = options.retries ?? SUBSCRIBER_DEFAULTS.retries
    this.backoffMs = options.backoffMs ?? SUBSCRIBER_DEFAULTS.backoffMs
    this.timeoutMs = options.timeoutMs ?? SUBSCRIBER_DEFAULTS.timeoutMs
    this.broadcast = options.broadcast ?? SUBSCRIBER_DEFAULTS.broadcast
    this.parks = options.onDead === 'park'
    this.concurrency = options.concurrency ?? Number.POSITIVE_INFINITY
  }

  addInstance(instance: SubscriberInstance): void {
    this.#isShared ||= this.instances.some(({ thread }) => thread === instance.thread)
    this.instances.push(instance)
    if (instance.isTemporary !== true) this.isTemporary = false
  }

  pause(plugin: string, isPaused: boolean): void {
    for (const instance of [...this.instances, ...this.quarantineInstances])
      if (instance.plugin === plugin) instance.isPaused = isPaused
  }

  get isBounded(): boolean {
    return this.concurrency !== Number.POSITIVE_INFINITY
  }

  /** True when one of its threads takes one more delivery. */
  get hasFreeThread(): boolean {
    return this.instances.some(({ isPaused, thread }) => !isPaused && thread.hasRoom)
  }

  /** The queues that get an event. @param only see Share */
  queuesFor(only: SubscriberInstance | null | undefined): DeliveryQueue[] {
    if (!this.broadcast || only === null) return [this.queue]
    return only === undefined ? this.instances.map((each) => this.queueOf(each)) : [this.queueOf(only)]
  }

  queueOf(instance: SubscriberInstance): DeliveryQueue {
    let queue = this.#instanceQueues.get(instance)
    if (queue === undefined) {
      queue = new DeliveryQueue(this, instance)
      this.#instanceQueues.set(instance, queue)
    }
    return queue
  }

  /** The instance with room whose thread has the fewest deliveries; of several in that thread the one whose turn it is. */
  pickInstance(): SubscriberInstance | null {
    const { instances } = this
    let best: SubscriberInstance | null = null
    for (let n = 0; n < instances.length; n++) {
      const instance = instances[n]!
      if (instance.isPaused || !instance.thread.hasRoom) continue
      if (best === null || instance.thread.deliveriesInFlight < best.thread.deliveriesInFlight) best = instance
    }
    return best !== null && this.#isShared ? this.#nextIn(best.thread) : best
  }

  #nextIn(thread: SubscriberThread): SubscriberInstance {
    const members = this.instances.filter((instance) => instance.thread === thread && !instance.isPaused)
    return members[this.#turn++ % members.length]!
  }
}
