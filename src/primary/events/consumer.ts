// Subscribers, events and deliveries as the hub knows them.
import type { LostReason, SubscriberOptions } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { DeliverySpan, TraceContext, TraceScope } from '../../contracts/tracing.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { SUBSCRIBER_DEFAULTS } from '../../core/schemas/event-contracts.ts'
import { shareIn } from '../../runtime/events/shares.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberCounts } from './delivery-counts.ts'
import type { DeliveryState } from './delivery-state.ts'
import type { PermitLimit, ShareLimit } from './rate-window.ts'
import { ShareLine, type WaitingLine } from './share-line.ts'

/** A thread that runs subscribers. */
export interface SubscriberThread {
  /** Name of the thread in what it stores. */
  readonly threadId: number
  /** True for the quarantine lane: it takes only suspects. */
  readonly isQuarantine: boolean
  /** Number of the lane; undefined for the primary. */
  readonly laneIndex?: number
  /** Deliveries in flight in this thread. */
  readonly deliveriesInFlight: number
  /** True while its event loop stands still. A delivery may be the cause, so the thread keeps its deliveries until it goes on or dies. */
  readonly isStill: boolean
  /** Time a debugger has been attached while the thread ran, milliseconds. It does not count towards timeouts. */
  readonly heldMs: number
  /** True when it has room for one more delivery. */
  readonly hasRoom: boolean
  /** For how many it has room. */
  readonly room: number
  /** @returns false if the thread did not take it */
  send(deliveryId: number, frame: EventFrame): boolean
  /** Tells the handler of a delivery that it should end. */
  lose(deliveryId: number, reason: LostReason): void
  /** Gives a delivery up: it no longer counts as in flight, even if its handler still runs. */
  abandon(deliveryId: number, reason: LostReason): void
}

/** A publisher waiting for the first object a subscriber returns. */
export interface Requester {
  /** Deliveries that may still reply. */
  open: number
  /** True while every ended delivery has failed. */
  onlyFailures: boolean
  reply(json: string): void
  /** Called when all deliveries have failed. */
  failed(error: string): void
}

/** A delivery that failed for good. */
export interface FailedDelivery {
  event: HubEvent
  group: string
  subscriber: string
  error: string
  attempts: number
  /** Report of the last crash, if threads died of the delivery. */
  blackBox: BlackBox | null
  /** True when the dead letter blocks its key. */
  parks: boolean
  /** Trace of the listeners' work; null while tracing is off. */
  trace: TraceScope | null
}

/** The event store or broker of an event. Called for each of its deliveries here. */
export interface EventSource {
  /** A broker limits the events in the hub, keeps no order, and may give an event to another process. */
  readonly isBroker: boolean
  /** The hub has accepted the delivery and not started it. */
  accepted?(delivery: Delivery): void
  /** False while no thread may start it. */
  mayBegin?(delivery: Delivery): boolean
  /** True while its server cannot be reached: a handler may wait for the same server. */
  readonly isAway?: boolean
  /**
   * Begins a delivery that is alone while it waits (`event.unique`), before a thread has it: publishers may store the next one, and no longer replace it.
   * @returns the event as it is now; null if it has gone, or waits for another time
   */
  begin?(delivery: Delivery): Promise<(EventFrame & { expiresMs: number }) | null>
  /** A thread has it. */
  begun?(delivery: Delivery): void
  /** Its thread has given it back, and has not begun it. */
  unbegun?(delivery: Delivery): void
  /**
   * Called before the pause between two attempts.
   * @param dueMs time of the next attempt, milliseconds since the epoch
   * @param mayLeave true when no delivery waits behind it
   * @returns true when it leaves the hub and waits in its store
   */
  retrying?(delivery: Delivery, dueMs: number, mayLeave: boolean): boolean
  /** Called when a delivery returns to the queue after a thread had it. @returns true when it leaves the hub and waits in its store */
  leaving?(delivery: Delivery): boolean
  /** Stores a dead letter. Resolves once it is stored, with no time limit. */
  storeDeadLetter(delivery: Delivery, letter: FailedDelivery): Promise<void>
  /** @param isDone true when the delivery was handled or is a dead letter; false when this process no longer delivers it */
  ended(delivery: Delivery, isDone: boolean): void
}

/** A delivery of an event that is watched has begun, was given back, or has ended. */
export interface DeliveryChange {
  readonly id: string
  readonly subscriber: string
  /** Null: it has not ended. */
  readonly outcome: 'done' | 'dead' | 'cancelled' | null
  readonly attempt: number
  readonly error: string | null
}

/** How an attempt failed: only `once` is retried. */
export type Failure = 'once' | 'unrecoverable' | 'poison'

/** State of one delivery in the event store or broker. */
export interface Share {
  readonly group: string
  /** Number of the next attempt. */
  readonly attempt: number
  /** Crashes of threads and processes during the delivery. */
  readonly deaths: number
  /** Time of the attempt, milliseconds since the epoch; 0 or less: now. */
  readonly dueMs: number
  /** Error of the previous attempt; empty before the first. */
  readonly error: string
  /** True when a thread has begun it: it no longer expires. */
  readonly isBegun?: boolean
  /** Report of the last crash. */
  readonly blackBox?: BlackBox | null
  /** Of a broadcast: true for one delivery to any instance instead of one to each. */
  readonly isForOne?: boolean
}

/**
 * An event accepted by the hub. Its `subscriber`, `attempt` and `trace` are set again for each delivery: a thread copies the event,
 * or these fields, before it returns from `send`. Its payload is a string of bytes (see EventFrame).
 */
export interface HubEvent extends EventFrame {
  /** Expiry, milliseconds since the epoch; 0: never. */
  expiresMs: number
  /** The publisher's span. */
  producer: TraceContext
  /** Null for an event in memory alone. */
  source: EventSource | null
  requester: Requester | null
}

/** @param frame with bytes as its payload; the hub owns it afterwards */
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

/** One event on its way to one consumer, or to one instance of a broadcast. */
export interface Delivery {
  /** New for each attempt: a late answer to an abandoned attempt finds no delivery. */
  id: number
  readonly consumer: Consumer
  readonly event: HubEvent
  state: DeliveryState
  attempt: number
  /** Lanes that died while handling it. After the first crash it is a suspect and goes to the quarantine lane. */
  deaths: number
  /** Report of the last crash. */
  blackBox: BlackBox | null
  /** Time of its first attempt here, milliseconds since the epoch; 0: at once. */
  dueMs: number
  /** True when a thread had begun it before the one that has it now. */
  isBegun: boolean
  /** Set from its first attempt on, if traced. */
  span: DeliverySpan | null
  /** Index among the open spans of this process; -1: no open span. */
  spanIndex: number
  /** The instance handling it now. */
  instance: SubscriberInstance | null
  readonly queue: DeliveryQueue
  /** Deadline of the attempt, milliseconds since the epoch, less the time a debugger had been attached by then. */
  deadlineMs: number
  /** When its thread got it, by the steady clock. */
  startedMs: number
  /** Error of the previous attempt; empty before the first. */
  error: string
  /** Whose it is, where its subscriber asks: see shares.ts. */
  readonly share: string
  /** Its limit lets it begin. */
  isLet: boolean
  /** Until when it may begin after its limit has let it, by `machineMs`; 0: at any time. */
  beginBy: number
  /** Name of the permit that it has while it runs; empty: none. */
  permit: string
}

/** @param share null: no attempt has been made */
export function deliveryOf(queue: DeliveryQueue, event: HubEvent, share: Share | null): Delivery {
  const { attempt, deaths, dueMs, error, blackBox = null } = share ?? NEW_SHARE
  return {
    id: 0,
    consumer: queue.consumer,
    queue,
    event,
    state: 'new',
    attempt,
    deaths,
    blackBox,
    dueMs: Math.max(0, dueMs),
    isBegun: share?.isBegun ?? (attempt > 1 || deaths > 0),
    span: null,
    spanIndex: -1,
    instance: null,
    deadlineMs: 0,
    startedMs: 0,
    error,
    share: queue.instance === null ? shareFor(event, queue.consumer.group) : '',
    isLet: false,
    beginBy: 0,
    permit: '',
  }
}

/** Of a stored event its row says it; others have those of all groups. */
function shareFor({ shares }: HubEvent, group: string): string {
  return shares.startsWith('{') ? shareIn(shares, group) : shares
}

/** No attempt has been made. */
export const NEW_SHARE: Omit<Share, 'group'> = { attempt: 1, deaths: 0, dueMs: 0, error: '' }

/** One subscriber in one thread. */
export interface SubscriberInstance {
  readonly thread: SubscriberThread
  /** Index of the subscriber in its thread. */
  readonly subscriberIndex: number
  readonly plugin: string
  readonly identity: string
  /** True while its plugin is disabled: its events wait. */
  isPaused: boolean
  /** True when it subscribed after its plugin had booted: no events are kept for it after its thread ends. */
  readonly isTemporary?: boolean
}

/** Follows subscriptions: the event store keeps events for absent groups. */
export interface GroupWatcher {
  /** True when stored events wait for the group while it is absent. */
  isKnown(event: string, group: string): boolean
  /** The last instance is gone. @param isForGood true when it has unsubscribed */
  left(event: string, group: string, isForGood: boolean): void
  /** Its handler has put off all of its events, milliseconds. */
  heldBack?(event: string, group: string, ms: number): void
  /** The limit of a share has room again: more of its rows may be read. */
  freed?(event: string, group: string, share: string): void
  /** The recipients of an event have changed. */
  changed?(event: string): void
}

/** An outage of a tool the consumer needs: deliveries are tried one at a time. */
export interface Outage {
  delayMs: number
  /** Time of the next try, by the steady clock. */
  atMs: number
  isDue: boolean
}

/** Deliveries waiting for a consumer. A broadcast has one queue per instance, so that no instance delays another. */
export class DeliveryQueue {
  readonly consumer: Consumer
  /** Sole recipient of these deliveries; null: any instance. */
  readonly instance: SubscriberInstance | null
  /** Deliveries waiting for a thread with room. */
  waiting: WaitingLine<Delivery> = new Fifo<Delivery>()
  /** Keys in progress, each with the deliveries waiting for it. */
  readonly keyed = new Map<string, Fifo<Delivery>>()
  /** Deliveries in flight. */
  inFlight = 0
  /** Its deliveries are being offered to threads. */
  isOffered = false

  constructor(consumer: Consumer, instance: SubscriberInstance | null) {
    this.consumer = consumer
    this.instance = instance
  }

  get takesTurns(): boolean {
    return this.waiting instanceof ShareLine
  }

  /** Those whose they are take turns. @param mayTry false while the limit of a share is used up */
  takeTurns(mayTry: (share: string) => boolean): void {
    const line = new ShareLine<Delivery>(mayTry)
    for (const delivery of this.waiting.takeIf(() => true)) line.push(delivery)
    this.waiting = line
  }

  /** False at the subscriber's concurrency limit, while it is paused, and while a tool it needs is unavailable. */
  get hasRoom(): boolean {
    const { outage, concurrency, isPaused } = this.consumer
    if (isPaused) return false
    return this.inFlight < concurrency && (outage === null || outage.isDue)
  }
}

/** A logical subscriber: all instances of one group on one event. One of them gets each event; a broadcast goes to all. */
export class Consumer {
  readonly event: string
  readonly group: string
  retries = 0
  backoffMs = 0
  timeoutMs = 0
  broadcast = false
  /** With `onDead: 'park'` a dead letter blocks its key. */
  parks = false
  /** Maximum number of deliveries of one queue in flight. */
  concurrency = Number.POSITIVE_INFINITY
  /** How often its handlers begin; empty: no limit. */
  limits: readonly ShareLimit[] = []
  /** How many of its handlers run at a time, over all processes; null: no limit. */
  permits: PermitLimit | null = null
  /** True when it asks whose an event is. */
  isSharing = false
  readonly instances: SubscriberInstance[] = []
  /** Its instances in the quarantine lane, for suspects. */
  readonly quarantineInstances: SubscriberInstance[]
  /** True when the last quarantine lane lacked this subscriber: its suspects are tried elsewhere. */
  lacksQuarantine = false
  /** Null until something has become of one of its deliveries: see DeliveryCounts. */
  counts: SubscriberCounts | null = null
  /** Pending deliveries and the bytes of their payloads. */
  pending = 0
  pendingBytes = 0
  /** Ended deliveries. */
  ended = 0
  /** Number of events of its name that this process had published before it was there. */
  publishedBefore = 0
  /** True when its last instance has unsubscribed: retries, delayed deliveries and waiting keys are dropped. */
  isGone = false
  /** True when all its instances subscribed after their plugins had booted. */
  isTemporary = true
  /** Until then it gets nothing, by `appMs`. */
  heldUntilMs = 0
  /** True while somebody has paused it: it gets nothing, and its events wait. */
  isPaused = false
  /** Set during an outage of a tool it needs. */
  outage: Outage | null = null
  readonly queue: DeliveryQueue = new DeliveryQueue(this, null)
  readonly #instanceQueues = new WeakMap<SubscriberInstance, DeliveryQueue>()
  /** True when one thread has several of its subscribers: they take turns. */
  #isShared = false
  #turn = 0

  constructor(event: string, group: string, options: SubscriberOptions, quarantineInstances: SubscriberInstance[]) {
    this.event = event
    this.group = group
    this.quarantineInstances = quarantineInstances
    this.setOptions(options)
  }

  /** New code may have other options: the latest instance decides. */
  setOptions(options: SubscriberOptions): void {
    this.retries = options.retries ?? SUBSCRIBER_DEFAULTS.retries
    this.backoffMs = options.backoffMs ?? SUBSCRIBER_DEFAULTS.backoffMs
    this.timeoutMs = options.timeoutMs ?? SUBSCRIBER_DEFAULTS.timeoutMs
    this.broadcast = options.broadcast ?? SUBSCRIBER_DEFAULTS.broadcast
    this.parks = options.onDead === 'park'
    const { concurrency = Number.POSITIVE_INFINITY } = options
    this.concurrency = typeof concurrency === 'number' ? concurrency : Number.POSITIVE_INFINITY
    this.permits = typeof concurrency === 'number' ? null : { max: concurrency.max, by: concurrency.by ?? null }
    // Names of events and groups have no blank.
    this.limits = (options.limit ?? []).map(({ max, perMs, name, by }, n) => ({
      max,
      perMs,
      name: name ?? `${this.event} ${this.group} ${n}`,
      by: by ?? null,
    }))
    const isShared = ({ by }: { by: number | null }): boolean => by !== null
    this.isSharing =
      options.fair !== undefined || this.limits.some(isShared) || (this.permits !== null && isShared(this.permits))
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

  /** True when one of its threads has room for one more delivery. */
  get hasFreeThread(): boolean {
    return this.instances.some(({ isPaused, thread }) => !isPaused && thread.hasRoom)
  }

  /** The queues of an event. @param isForOne see Share */
  queuesFor(isForOne: boolean): DeliveryQueue[] {
    return this.broadcast && !isForOne ? this.instances.map((each) => this.queueOf(each)) : [this.queue]
  }

  /** All of its queues. */
  queues(): DeliveryQueue[] {
    return this.broadcast ? [this.queue, ...this.instances.map((each) => this.queueOf(each))] : [this.queue]
  }

  queueOf(instance: SubscriberInstance): DeliveryQueue {
    let queue = this.#instanceQueues.get(instance)
    if (queue === undefined) {
      queue = new DeliveryQueue(this, instance)
      this.#instanceQueues.set(instance, queue)
    }
    return queue
  }

  /** Picks the instance with room whose thread has the fewest deliveries. Instances of one thread take turns. */
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
