// Events and their deliveries as the hub knows them.
import type { BlackBox } from '../../contracts/registry.ts'
import type { DeliverySpan, TraceContext, TraceScope } from '../../contracts/tracing.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { Consumer, DeliveryQueue, SubscriberInstance } from './consumer.ts'

/**
 * What a delivery waits for.
 * ```
 *   new ──► later ◄─► behind ──┬──► ready ◄───┬─► sent ──┬──► ended
 *             ▲                └──► suspect ◄─┘          ├──► dead ──► ended
 *             └──────────────────────────────────────────┘
 * ```
 * `later`: its time. `behind`: an earlier delivery of its key, or the dead letter that blocks the key. `ready`: a thread with room. `suspect`: the
 * quarantine lane. `sent`: the answer of its thread. `dead`: the commit of its dead letter. Steps may be skipped. A delivery that has failed waits
 * `later`; one whose thread died, or whose tool is away, is `ready` or `suspect` again. Each of them is `ended` if its subscriber leaves.
 */
export type DeliveryState = 'new' | 'later' | 'behind' | 'ready' | 'suspect' | 'sent' | 'dead' | 'ended'

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
  /** A thread has it. `isBegun` says whether one had it before. */
  begun?(delivery: Delivery): void
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
  /** Set when this attempt has already failed. */
  readonly failure?: Failure | null
  /** True when a thread has had it: it no longer expires. */
  readonly isBegun?: boolean
  /** Report of the last crash. */
  readonly blackBox?: BlackBox | null
  /** Broker only: the instance that had it last, and the only recipient of a broadcast; null: any instance. */
  readonly instance?: SubscriberInstance | null
  /** Set when the delivery began elsewhere and is traced. */
  readonly span?: DeliverySpan | null
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
  /** True when a thread has had it. */
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
  /** Error of the previous attempt; empty before the first. */
  error: string
}

/** @param share null: no attempt has been made */
export function deliveryOf(queue: DeliveryQueue, event: HubEvent, share: Share | null): Delivery {
  const { attempt, deaths, dueMs, error, blackBox = null, instance = null, span = null } = share ?? NEW_SHARE
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
    span,
    spanIndex: -1,
    instance,
    deadlineMs: 0,
    error,
  }
}

/** No attempt has been made. */
export const NEW_SHARE: Omit<Share, 'group'> = { attempt: 1, deaths: 0, dueMs: 0, error: '' }

/** Moves a delivery on. @throws Error where its state does not allow it */
export function become(delivery: Delivery, next: DeliveryState): void {
  if (!mayFollow(delivery.state, next)) throw new Error(`A delivery that is ${delivery.state} cannot become ${next}`)
  delivery.state = next
}

function mayFollow(state: DeliveryState, next: DeliveryState): boolean {
  switch (next) {
    case 'sent':
      return state === 'ready' || state === 'suspect'
    case 'ended':
      return state !== 'ended'
    case 'behind':
      return state === 'new' || state === 'later' || state === 'behind'
    case 'new':
      return false
    default:
      return state === 'sent' || state === 'new' || state === 'later' || state === 'behind'
  }
}
