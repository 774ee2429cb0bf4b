import type { SubscribeOptions } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { DeliverySpan, TraceScope } from '../../contracts/tracing.ts'
import type { TraceContext } from '../../core/causality/trace-context.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { SUBSCRIBER_DEFAULTS } from '../../core/config/subscriber-defaults.ts'
import type { EventFrame, PayloadForm } from '../../transport/frames/event-frame.ts'

/** A thread that runs subscribers. */
export interface SubscriberThread {
  /** It gets nothing but deliveries that threads died of. */
  readonly isQuarantine: boolean
  /** Deliveries that it has not answered yet. */
  readonly deliveriesInFlight: number
  /** Its loop stands still: what it has may have brought that about, and is not taken from it before it goes on or dies. */
  readonly isStill: boolean
  /** True when it takes one more. */
  readonly hasRoom: boolean
  /**
   * @param form how the frame holds its payload
   * @returns false when it could not take the delivery after all
   */
  send(deliveryId: number, frame: EventFrame, form: PayloadForm): boolean
  /** Nobody waits for its answer any more: it counts as in flight no longer, whenever its handler ends. */
  abandon(deliveryId: number): void
}

/** Who waits for the first object that a subscriber returns. */
export interface Requester {
  /** Deliveries that may still reply. */
  open: number
  /** All of those that have ended have failed. */
  onlyFailures: boolean
  reply(json: string): void
  /** All have failed. */
  failed(error: string): void
}

/** A delivery that has failed for good. */
export interface FailedDelivery {
  event: HubEvent
  group: string
  subscriber: string
  error: string
  attempts: number
  /** Of the last death, when threads died of it. */
  blackBox: BlackBox | null
  /** What listeners do about it belongs here; null while tracing is off. */
  trace: TraceScope | null
}

/** The broker that a delivery comes from, when that is not the hub itself. */
export interface DeliverySource {
  /** Stores a dead letter. Resolves when it is safe, however long that takes. */
  storeDeadLetter(letter: FailedDelivery): Promise<void>
  /** @param isDone true when it was handled or is a dead letter by now; false when nobody here takes it any more */
  ended(isDone: boolean): void
}

/** An event that a broker has given to this process, on its way to one consumer. */
export interface BrokerDelivery {
  group: string
  /** Where it was last; of a broadcast, the only one that may have it. */
  instance: SubscriberInstance | null
  attempt: number
  deaths: number
  /** Of the last of these deaths. */
  blackBox: BlackBox | null
  /** Why this attempt has failed; null when it is to be made. */
  fault: string | null
  /** When it has begun elsewhere and is traced. */
  span: DeliverySpan | null
  requester: Requester | null
  source: DeliverySource
}

/** One subscriber in one thread. */
export interface SubscriberInstance {
  readonly thread: SubscriberThread
  /** Its number in that thread. */
  readonly subscriberIndex: number
  readonly plugin: string
  readonly identity: string
  /** Its plugin is set aside: what comes for it waits. */
  isPaused: boolean
}

/**
 * An event that the hub has taken. Its `subscriber`, `attempt` and `trace` are set anew for each delivery: a thread copies them, or the whole, before it returns from `send`.
 * Its payload is a string of bytes (see EventFrame); that of a broker's event is text, as the broker has it.
 */
export interface HubEvent extends EventFrame {
  /** Not delivered any more from here on, milliseconds since the epoch; 0: never. */
  expiresMs: number
  /** The span that published. */
  producer: TraceContext
}

/** One event on its way to one consumer (or, broadcast, to one instance of it). */
export interface Delivery {
  /** New for each attempt, so that a late answer to an attempt that was given up finds nobody. */
  id: number
  readonly consumer: Consumer
  readonly event: HubEvent
  attempt: number
  /** Lanes that died while they were at it. From the first on it is a suspect, and goes to the quarantine lane. */
  deaths: number
  /** What is known of the last of them. */
  blackBox: BlackBox | null
  /** Some thread has had it. */
  isBegun: boolean
  /** Its last attempt has failed. */
  isGivenUp: boolean
  /** From its first attempt on, when it is traced. */
  span: DeliverySpan | null
  /** Where it is, while it is somewhere. */
  instance: SubscriberInstance | null
  readonly queue: DeliveryQueue
  /** When the attempt counts as failed, milliseconds since the epoch. */
  deadlineMs: number
  readonly requester: Requester | null
  readonly source: DeliverySource | null
}

export const deliveryOf = (
  queue: DeliveryQueue,
  event: HubEvent,
  requester: Requester | null,
  source: DeliverySource | null = null,
): Delivery => ({
  id: 0,
  consumer: queue.consumer,
  queue,
  event,
  attempt: 1,
  deaths: 0,
  blackBox: null,
  isBegun: false,
  isGivenUp: false,
  span: null,
  instance: null,
  deadlineMs: 0,
  requester,
  source,
})

/** What waits for one consumer: for any instance of it, or (broadcast) for one instance, so that no instance's copies wait for another's. */
export class DeliveryQueue {
  readonly consumer: Consumer
  /** Only this instance may get what waits here. */
  readonly instance: SubscriberInstance | null
  /** Deliveries that no thread had room for. */
  readonly waiting = new Fifo<Delivery>()
  /** Keys that are being handled, each with those that wait behind it. */
  readonly keyed = new Map<string, Fifo<Delivery>>()

  constructor(consumer: Consumer, instance: SubscriberInstance | null) {
    this.consumer = consumer
    this.instance = instance
  }
}

/** A logical subscriber: all the instances that share one group on one event. Each event goes to one of them (broadcast: to all). */
export class Consumer {
  readonly event: string
  readonly group: string
  retries = 0
  backoffMs = 0
  timeoutMs = 0
  broadcast = false
  readonly instances: SubscriberInstance[] = []
  /** In the quarantine lane, for suspects. */
  readonly quarantineInstances: SubscriberInstance[]
  /** The quarantine lane that is up, or was up last, does not have it: its suspects are tried elsewhere. */
  lacksQuarantine = false
  /** Deliveries that are accepted and not finished, wherever they are, and the bytes of their payloads. */
  pending = 0
  pendingBytes = 0
  /** Its last instance has left, of its own will: what comes back to it (a retry, a delay, the next of a key) ends here. */
  isGone = false
  readonly queue: DeliveryQueue = new DeliveryQueue(this, null)
  readonly #instanceQueues = new WeakMap<SubscriberInstance, DeliveryQueue>()
  /** Stands for all of them while there is none. */
  #lastInstance: SubscriberInstance | null = null

  constructor(event: string, group: string, options: SubscribeOptions, quarantineInstances: SubscriberInstance[]) {
    this.event = event
    this.group = group
    this.quarantineInstances = quarantineInstances
    this.setOptions(options)
  }

  /** New code may have other options: those of the instance that came last hold. */
  setOptions(options: SubscribeOptions): void {
    this.retries = options.retries ?? SUBSCRIBER_DEFAULTS.retries
    this.backoffMs = options.backoffMs ?? SUBSCRIBER_DEFAULTS.backoffMs
    this.timeoutMs = options.timeoutMs ?? SUBSCRIBER_DEFAULTS.timeoutMs
    this.broadcast = options.broadcast ?? SUBSCRIBER_DEFAULTS.broadcast
  }

  addInstance(instance: SubscriberInstance): void {
    this.instances.push(instance)
    this.#lastInstance = instance
  }

  pause(plugin: string, isPaused: boolean): void {
    for (const instance of [...this.instances, ...this.quarantineInstances, this.#lastInstance])
      if (instance?.plugin === plugin) instance.isPaused = isPaused
  }

  /** True when all of its instances are paused, or the last of them was when its thread went. */
  get isPaused(): boolean {
    return this.instances.length > 0
      ? this.instances.every(({ isPaused }) => isPaused)
      : this.#lastInstance?.isPaused === true
  }

  queueOf(instance: SubscriberInstance): DeliveryQueue {
    let queue = this.#instanceQueues.get(instance)
    if (queue === undefined) {
      queue = new DeliveryQueue(this, instance)
      this.#instanceQueues.set(instance, queue)
    }
    return queue
  }

  /** The instance with room whose thread has the fewest deliveries. */
  pickInstance(): SubscriberInstance | null {
    const { instances } = this
    let best: SubscriberInstance | null = null
    for (let n = 0; n < instances.length; n++) {
      const instance = instances[n]!
      if (instance.isPaused || !instance.thread.hasRoom) continue
      if (best === null || instance.thread.deliveriesInFlight < best.thread.deliveriesInFlight) best = instance
    }
    return best
  }
}
