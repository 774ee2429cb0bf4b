// The tool `event_bus`: publishing, subscribing, records, dead letters, types of payloads.

import type { Awaitable, Owner } from './common.ts'
import type { TransactionCompanion, Tx } from './db.ts'
import type {
  CancelFilter,
  CancelOptions,
  CancelTarget,
  Delivered,
  EventName,
  Payload,
  Published,
  PublishOptions,
} from './events.ts'
import type { BlackBox } from './registry.ts'

/** One event, as `/system/traces/flat` shows it: with the keys of its payload, never the values. */
export interface EventRecord {
  /** `evt_` and a UUIDv7 without dashes. */
  id: string
  /** The event whose subscriber published this one; null for a root. */
  parent_id: string | null
  event: string
  emitter: string
  subscribers: string[]
  payload_keys: string[]
  /** ISO 8601 UTC with milliseconds. */
  timestamp: string
  /** The HTTP request that caused the first event of the chain, or null. */
  request_id: string | null
  /** Id of the trace that the event belongs to, 32 hexadecimal digits; null when the trace is not exported. */
  trace_id: string | null
}

/** The second argument of a subscriber: everything about the event except its payload. */
export interface EventMeta
  extends Pick<EventRecord, 'id' | 'parent_id' | 'event' | 'emitter' | 'timestamp' | 'request_id'> {
  /** 1 on the first delivery. */
  attempt: number
  /**
   * Aborted when the handler should end: its time is up, the event was cancelled, the process stops and does not wait, or another process has the
   * event. `signal.reason` is DELIVERY_LOST, with `details: { reason }`, a `LostReason`.
   */
  readonly signal: AbortSignal
  /** Begins the time limit of the attempt anew. Call it as often as you like: it leaves the thread at most ten times a second. @throws DELIVERY_LOST */
  heartbeat(): void
  /**
   * Tells those who `follow` the event how far its handler is. Kept with the event; the last one counts. Call it as often as you like.
   * @param note at most 1,000 characters
   * @throws EVENT_OPTIONS_INVALID if `done` is above `of` or one is no number from 0 on; DELIVERY_LOST; EVENT_BUS_UNAVAILABLE without a database
   */
  progress(done: number, of: number, note?: string): void
  /**
   * Gives those who `follow` the event a part of its result: any JSON of at most 64 KiB. The last 1,000 chunks of an attempt, and 1 MiB, are kept.
   * @throws EVENT_PAYLOAD_INVALID, EVENT_PAYLOAD_TOO_LARGE, DELIVERY_LOST; EVENT_BUS_UNAVAILABLE without a database
   */
  emit(chunk: unknown): void
}

/** What `follow` tells of an event: how it stands with one of its subscribers, or one chunk. */
export interface FollowedEvent {
  /** Give it as `from` to go on behind it. */
  id: string
  /** `<plugin>.<function>`, or the group. */
  subscriber: string
  state: 'waiting' | 'running' | 'done' | 'dead' | 'cancelled'
  /** Number of the attempt that runs, or comes next. */
  attempt: number
  /**
   * Once it has reported: a number that grows each time a handler begins anew and reports, in another attempt or in the same one after a crash. Chunks
   * of a lower `run` no longer count.
   */
  run?: number
  /** When waiting: how many go before it, up to 1,000; null: more. */
  place?: number | null
  /** When waiting for a time, ISO 8601 UTC. */
  at?: string
  /** The last progress. */
  done?: number
  of?: number
  note?: string
  /** What `emit` was given. */
  chunk?: unknown
  /** Chunks before this one that are not kept any more. */
  missed?: number
  /** When done: what the handler returned, if that is kept. */
  result?: unknown
  /** When dead, or when waiting for another attempt. */
  error?: string
}

export interface FollowOptions {
  /** The `id` of the last item that was seen: chunks up to it are not told again. Anything else begins anew. */
  from?: string | undefined
  /** Ends the following. */
  signal?: AbortSignal
}

/** How many deliveries `cancel` has taken back: an event has one for each subscriber. Both 0: all had ended, or there was no such event. */
export interface Cancelled {
  /** They had not begun, and never will. */
  waiting: number
  /** Their handlers were told; what these still do does not count. */
  running: number
}

/** What waits for one subscriber of one event: over all processes that share a database, else in this one. */
export interface Queue {
  event: string
  /** `<plugin>.<function>`, or the group. */
  subscriber: string
  /** False while no process has the subscriber: its stored events wait seven days for it. */
  subscribed: boolean
  /** Since when it is paused, ISO 8601 UTC; null: it is not. */
  paused: string | null
  /** They may begin, or wait for their key. */
  waiting: number
  running: number
  /** Delayed, or put off. */
  later: number
  /** They have failed, and wait for the next attempt. */
  retrying: number
  /** Keys that wait for a dead letter: their events are among `waiting`. */
  blocked_keys: number
  dead: number
  /** Which of these numbers are larger than they say: each is counted up to 10,000, with more than 20 queues to fewer. */
  more: ('waiting' | 'later' | 'retrying' | 'blocked_keys')[]
  /** When `waiting` is one of `more`: how many, as far as that can be told without counting; null: it cannot. */
  waiting_estimate: number | null
  /** Since when the first of them waits, ISO 8601 UTC; null: none waits. */
  oldest_at: string | null
  /** Published, and ended, in the last minute. */
  in_per_minute: number
  out_per_minute: number
  /** Until none waits, at the rates of the last minute; null: it does not get shorter, or its length is not known. */
  empty_in_ms: number | null
}

/** Which subscriber's deliveries are listed. */
export interface DeliveryPageOptions {
  event: EventName
  /** Its group, if it has one. */
  subscriber: string
  /** `waiting` are in their order, `later` and `retrying` by their times. Default `'waiting'`. */
  state?: QueuedDelivery['state']
  key?: string
  /** Of the event. */
  id?: string
  /** A part of the payload's JSON. One call looks at 5,000 deliveries at most: go on with `next`. */
  search?: string
  /** With their payloads. Default false. */
  payloads?: boolean
  /** From 1 to 500. Default 100. */
  limit?: number
  /** `next` of the page before. */
  after?: string
}

export interface DeliveryPage {
  deliveries: QueuedDelivery[]
  /** Give it as `after`; null: there are no more. */
  next: string | null
}

/** One event on its way to one subscriber. */
export interface QueuedDelivery
  extends Pick<EventRecord, 'id' | 'parent_id' | 'event' | 'emitter' | 'payload_keys' | 'timestamp' | 'request_id'> {
  subscriber: string
  state: 'waiting' | 'running' | 'later' | 'retrying' | 'blocked'
  key: string | null
  /** Number of the attempt that runs, or comes next. */
  attempt: number
  /** When it is to begin, ISO 8601 UTC. */
  at?: string
  /** Of the last attempt. */
  error?: string
  /** When running: since when, and where. `lane` is null for the primary. */
  running?: { since: string; replica: string; lane: number | null; done?: number; of?: number; note?: string }
  payload?: Payload
}

/** What the replay of some dead letters would do. */
export interface ReplayPreview {
  event: string
  /** Name of the plugin. */
  subscriber: string
  /** How many would be delivered to it. */
  letters: number
  /** How many of these hold up their keys. */
  parked: number
  /** Of the dead letters, ISO 8601 UTC. */
  oldest: string
  newest: string
  /** False: nobody subscribes any more, and none would be replayed. */
  subscribed: boolean
}

/** Why a delivery is no longer its handler's. With `stopped`, what the handler does until the process has ended still counts. */
export type LostReason = 'timeout' | 'cancelled' | 'stopped' | 'moved'

export type Subscriber = (data: Payload, event: EventMeta, tx?: Tx) => unknown | Promise<unknown>

export interface EventLimit {
  /** From 1 to 1,000,000. */
  max: number
  /** From 10 to 2,592,000,000 (30 days). */
  perMs: number
  /** 1 to 200 of the characters of event names. Default: the limit is the subscriber's own. */
  name?: string
  /** A limit for each value that it returns. */
  by?: ShareOf
}

/**
 * Whose an event is, told from its payload: a string of at most 200 characters, a number, a boolean, or nothing. Called where the event is published; it must
 * use nothing but the payload. What throws, or returns anything else, has one share together.
 */
// biome-ignore lint/suspicious/noExplicitAny: the payload of an event without a contract has any type
export type ShareOf = (data: any) => string | number | boolean | null | undefined

export interface SubscribeOptions {
  /** Further attempts after the first one failed, unless it threw an `Unrecoverable`. Default 0. */
  retries?: number
  /** Before retry n: a random time up to `backoffMs * 2^(n-1)` milliseconds (full jitter). Default 500. */
  backoffMs?: number
  /** Milliseconds until an attempt counts as failed. Default 30,000. */
  timeoutMs?: number
  /** Subscribers of one group share the events: each goes to one of them. In one thread they take turns. Default: the subscriber's own identity. */
  group?: string
  /** Every thread that hosts the subscriber gets every event. With `EVENT_BUS_DRIVER=database`, a restart drops broadcasts that are not handled yet. Default false: one thread gets it. */
  broadcast?: boolean
  /**
   * Deliveries that the subscriber's group handles at a time in one process, whatever the number of its lanes; with `broadcast` in one thread.
   * The others wait in their order. One that waits for its next attempt does not count, nor does one whose time is up although its handler
   * goes on. From 1 to 1,000,000; default: no limit. `{ max }`: over all processes that share a PostgreSQL database, else in this one, and with `by` for
   * each value that it returns; not with `broadcast`.
   */
  concurrency?: number | { max: number; by?: ShareOf }
  /**
   * Whose turn it is: those who have events waiting take turns, so one with 100,000 does not delay one with a single event. Not with `broadcast`.
   */
  fair?: ShareOf
  /**
   * How often handlers of the group begin, over all processes that share a PostgreSQL database, else in this one: at most `max` in any `perMs`
   * milliseconds. Several at once all hold. Subscribers with a limit of the same `name` share it. Not with `broadcast`.
   */
  limit?: EventLimit | readonly EventLimit[]
  /**
   * What becomes of the events that follow a dead letter with the same `key`. With `'skip'` they go on. With `'park'` they wait for it: when it is
   * deleted they go on; when it is replayed it is handled first, then they in their order; when it fails again they go on waiting. Not with
   * `broadcast`. Default `'skip'`.
   */
  onDead?: 'skip' | 'park'
  /**
   * Runs the handler in a transaction of the tool `db`, its third argument `tx`, whose commit also notes that the event is handled: what it writes
   * and publishes through `tx` happens once, however often the event is delivered. A handler that throws has written nothing. It may be called
   * again by the database, as the function of any transaction. Worker plugins only, and not with `broadcast`. Default false.
   */
  transaction?: boolean
  /**
   * How long what the handler returns is kept for those who `follow` the event, milliseconds: any JSON of at most 64 KiB. 1,000 to 2,592,000,000 (30 days).
   * Default: an hour if the handler has reported something, else not at all.
   */
  resultMs?: number
}

/** Called synchronously when the last attempt at a delivery has failed. */
export type FailureListener = (failure: DeliveryFailure) => void
export interface DeliveryFailure {
  event: string
  event_id: string
  /** Name of the plugin. `queues()` and `getDeliveries` have `<plugin>.<function>`. */
  subscriber: string
  error: string
  /** Of a delivery that is given up because its threads died, these attempts are counted, too. */
  attempts: number
}

export interface EventBus {
  /**
   * Resolves with the event's id once the bus has taken it.
   * @throws EVENT_CONTRACT with `details: [{ path, message }]` when the event has a contract and the payload does not fit it,
   * EVENT_PAYLOAD_INVALID, EVENT_PAYLOAD_TOO_LARGE, EVENT_NAME_INVALID, EVENT_NAMES_LIMIT, EVENT_BUS_FULL
   */
  publish<Name extends EventName>(event: Name, payload: Published<Name>, options?: PublishOptions): Promise<string>
  /**
   * @param handler gets the payload with the type of the event's contract; without a contract it may state a type, which nobody checks; with `transaction: true` also
   * the transaction
   * @returns a function that ends the subscription in this thread
   * @throws EVENT_NAME_INVALID, EVENT_OPTIONS_INVALID, EVENT_SUBSCRIPTIONS_LIMIT
   */
  subscribe<Name extends EventName, Own extends object = Payload>(
    event: Name,
    handler: (data: Delivered<Name, Own>, event: EventMeta, tx: Tx) => unknown,
    options: SubscribeOptions & { transaction: true },
  ): () => void
  subscribe<Name extends EventName, Own extends object = Payload>(
    event: Name,
    handler: (data: Delivered<Name, Own>, event: EventMeta) => unknown,
    options?: SubscribeOptions,
  ): () => void
  /**
   * Publishes, and resolves with the first non-null object that a subscriber returns.
   * @param options `timeoutMs`: default 5000
   * @throws EVENT_CONTRACT; EVENT_BUS_NO_SUBSCRIBER at once; EVENT_BUS_REQUEST_TIMEOUT; or the error of the last subscriber when all have failed
   */
  request<T extends Payload = Payload, Name extends EventName = EventName>(
    event: Name,
    payload: Published<Name>,
    options?: { timeoutMs?: number },
  ): Promise<T>
  /**
   * Takes events back, in all processes: those that wait are gone, the signals of those that run are aborted, and nothing is tried again.
   * @param options `causedToo` takes back what the event has caused as well; only with an id
   * @throws EVENT_NAME_INVALID, EVENT_OPTIONS_INVALID
   */
  cancel(what: CancelFilter, options?: CancelOptions): Promise<Cancelled>
  /**
   * Tells how it stands with an event, each time that changes, until it has ended for all subscribers; in any thread and process. Returned by a route, it
   * is a stream of server-sent events that goes on where it was after a reconnect (`Last-Event-ID`).
   * @throws EVENT_OPTIONS_INVALID; in the iteration EVENT_UNKNOWN if nothing is known of the event, or its id is none, EVENT_BUS_UNAVAILABLE
   */
  follow(id: string, options?: FollowOptions): AsyncIterable<FollowedEvent>
  /** All subscribers and what waits for them. Looked up at most once a second. */
  queues(): Promise<Queue[]>
  /** @throws EVENT_OPTIONS_INVALID; EVENT_BUS_UNAVAILABLE */
  getDeliveries(page: DeliveryPageOptions): Promise<DeliveryPage>
  /**
   * Begins nothing more of an event's subscribers, in all processes, until `resume`: what runs ends, everything else waits. Kept in the database, and
   * over restarts; without one as long as the process. Requests for a reply wait, too, until their time is over.
   * @param subscriber its group, if it has one. Default: all that the event has now
   * @returns how many are paused by it
   * @throws EVENT_NAME_INVALID, EVENT_OPTIONS_INVALID, EVENT_BUS_UNAVAILABLE
   */
  pause(event: EventName, subscriber?: string): Promise<number>
  /** @returns how many are resumed by it */
  resume(event: EventName, subscriber?: string): Promise<number>
  /**
   * Deliveries of an event that wait for their time, or for the next attempt, may begin at once. Their attempt stays the same.
   * @param subscriber for this one alone
   * @returns how many
   * @throws EVENT_OPTIONS_INVALID, EVENT_BUS_UNAVAILABLE
   */
  runNow(id: string, subscriber?: string): Promise<number>
  /** Receives every event record of the process. The listener is called synchronously and must not block. @returns a function that removes it */
  addListener(listener: (record: EventRecord) => void): () => void
  /** @returns a function that removes it */
  addFailureListener(listener: FailureListener): () => void
  /** The last 500 event records of the process, oldest first. */
  getTraceHistory(): Awaitable<EventRecord[]>
  /** Event name → names of the subscribing plugins. */
  getSubscribers(): Awaitable<Record<string, string[]>>
  /** Event name → its emitters, its subscribers, and how often it was published since the start. */
  getTopology(): Awaitable<Record<string, TopologyEntry>>
  /**
   * The newest dead letters, or the newest that are older than one of them: oldest first. At most 4 MiB of JSON.
   * @throws EVENT_OPTIONS_INVALID
   */
  getDeadLetters(page?: DeadLetterPage): Awaitable<DeadLetter[]>
  /** Returns what the replay of a dead letter delivers; null when there is no such dead letter. It may hold secrets: show it to nobody who may not change it. */
  getDeadLetterPayload(id: string): Promise<Payload | null>
  /** Delivers a dead letter once more, to its own subscriber only. False when there is no such dead letter, or its subscriber no longer exists. */
  replayDeadLetter(id: string): Awaitable<boolean>
  /**
   * Replays the dead letters for which the filter holds, the oldest first. What becomes of each is in `getDeadLetters({ replayed: true })`.
   * @param filter `limit`: from 1 to 10,000, default 1000
   * @returns how many were replayed: not those whose subscribers no longer exist
   * @throws EVENT_OPTIONS_INVALID
   */
  replayDeadLetters(filter?: DeadLetterFilter & { limit?: number }): Promise<number>
  /** What `replayDeadLetters` would do with the same filter, by subscriber. Nothing is replayed. @throws EVENT_OPTIONS_INVALID */
  previewReplay(filter?: DeadLetterFilter & { limit?: number }): Promise<ReplayPreview[]>
  /**
   * Gives a dead letter another payload, which its replay delivers. The original is kept beside it.
   * @returns false when there is no such dead letter
   * @throws EVENT_CONTRACT, EVENT_PAYLOAD_INVALID, EVENT_PAYLOAD_TOO_LARGE; EVENT_OPTIONS_INVALID for a dead letter in Redis
   */
  editDeadLetter(id: string, payload: Payload): Promise<boolean>
  /** False when there is no such dead letter. */
  deleteDeadLetter(id: string): Awaitable<boolean>
}

/** The checked options of a subscriber, as they cross threads: a function is its number among those that tell shares. */
export interface SubscriberOptions extends Omit<SubscribeOptions, 'limit' | 'fair' | 'concurrency'> {
  concurrency?: number | { max: number; by?: number }
  limit?: readonly (Omit<EventLimit, 'by'> & { by?: number })[]
  fair?: number
}

/** A subscriber as a thread registers it. */
export interface Subscription {
  owner: Owner
  event: string
  handler: Subscriber
  options: SubscriberOptions
  /** They tell the shares of events. */
  shares: readonly ShareOf[]
}

/** One event of the topology that `/system/events` shows. */
export interface TopologyEntry {
  emitters: string[]
  subscribers: string[]
  fire_count: number
}

/** Which dead letters are meant: those for which all that is given holds. */
export interface DeadLetterFilter {
  event?: string
  /** Name of the plugin. */
  subscriber?: string
  /** A part of the error's message. */
  error?: string
  /** Dead letters of this time or later, and before that time. */
  since?: Date | string
  until?: Date | string
  /** Those that events wait for: the keys that are held up. */
  parked?: boolean
  /** At most 1000. */
  ids?: readonly string[]
}

/** Which dead letters are listed. */
export interface DeadLetterPage extends DeadLetterFilter {
  /** Those that were replayed, with what became of it, instead of those that wait. Default false. */
  replayed?: boolean
  /** With their payloads, which may hold secrets. Default false. */
  payloads?: boolean
  /** How many at most, from 1 to 1000. Default 1000. */
  limit?: number
  /** Only dead letters older than this one: the id of the first dead letter of the page before. */
  before?: string
}

/** What has become of the replay of a dead letter. */
export interface LetterReplay {
  /** ISO 8601 UTC with milliseconds. */
  at: string
  outcome: 'running' | 'done' | 'failed'
  /** Why it has failed again. */
  error?: string
  /** The id of the new dead letter. */
  letter?: string
}

/** A dead letter. */
export interface DeadLetter extends DeliveryFailure, Pick<EventRecord, 'payload_keys' | 'timestamp' | 'request_id'> {
  id: string
  /** True when the events that follow with its key wait for it. */
  parked?: true
  /** Only then: the key, and how many events of it wait; with `EVENT_BUS_DRIVER=in_process` those of this process. */
  key?: string
  waiting?: number
  /** Only when it was asked for: what its replay delivers. */
  payload?: Payload
  /** Only when its payload was edited: the keys of the original, which is kept. */
  original_keys?: string[]
  /** Only when it was replayed. */
  replay?: LetterReplay
  /** Only when threads have died while they handled the delivery: what is known of the last death, without its steps. */
  black_box?: BlackBox
}

/**
 * Checks what a transaction publishes: the name, the options, and the payload against its contract.
 * @returns the payload as it is now, and the options
 * @throws or rejects with EVENT_NAME_INVALID, EVENT_OPTIONS_INVALID, EVENT_CONTRACT
 */
export type PublicationCheck = (
  event: string,
  payload: Payload,
  options: unknown,
) => Awaitable<{ payload: Payload; options: PublishOptions }>

/** The part of the bus that differs between threads: the tool `event_bus` calls it. */
export interface BusTransport {
  /** Set by the tool `event_bus`. */
  checkPublication: PublicationCheck | null
  /** Set by it, too. @throws EVENT_NAME_INVALID, EVENT_OPTIONS_INVALID */
  checkCancel: ((what: unknown, options: unknown) => CancelTarget) | null
  /** What goes with a run of a transaction of a plugin: it makes its `tx` a Tx. @param emitter the plugin */
  beginTransaction(emitter: string): TransactionCompanion
  /** The database does not take something at the moment: the primary tests whether it takes events. */
  storeRefused?(): void
  publish(emitter: string, event: string, payload: Payload, options: PublishOptions): Promise<string>
  follow(id: string, options: FollowOptions): AsyncIterable<FollowedEvent>
  request(emitter: string, event: string, payload: Payload, timeoutMs: number): Promise<Payload>
  subscribe(subscription: Subscription): () => void
  addListener(listener: (record: EventRecord) => void): () => void
  addFailureListener(listener: FailureListener): () => void
  /** @param event of the dead letter */
  editDeadLetter(id: string, event: string, payload: Payload): Awaitable<boolean>
  readonly services: HubServices
}

/** How it stands with an event. */
export interface FollowState {
  version: string
  /** The process stops: who follows goes on in another one. */
  isStopping?: true
  /** By subscriber. `lastN`: number of its last chunk. */
  subscribers: (Omit<FollowedEvent, 'id' | 'chunk' | 'missed'> & { lastN: number })[]
}

/** What only the hub and the event store know: a lane asks the primary. */
export interface HubServices {
  queues(): Promise<Queue[]>
  deliveries(page: DeliveryPageOptions): Promise<DeliveryPage>
  /** @param subscriber null: all of the event */
  setPaused(event: string, subscriber: string | null, isPaused: boolean): Promise<number>
  /** @param subscriber null: all of the event */
  runNow(id: string, subscriber: string | null): Promise<number>
  cancel(what: CancelTarget): Awaitable<Cancelled>
  /**
   * Waits until it stands otherwise with an event than was seen, at most some time.
   * @param seen `version` of the last answer; empty: none
   * @throws EVENT_UNKNOWN
   */
  followed(id: string, seen: string): Awaitable<FollowState>
  history(): Awaitable<EventRecord[]>
  topology(): Awaitable<Record<string, TopologyEntry>>
  deadLetters(page?: DeadLetterPage): Awaitable<DeadLetter[]>
  /** As JSON; null when there is no such dead letter. */
  deadLetterPayload(id: string): Awaitable<string | null>
  /** False when there is no such dead letter. */
  replayDeadLetter(id: string): Awaitable<boolean>
  deleteDeadLetter(id: string): Awaitable<boolean>
}
