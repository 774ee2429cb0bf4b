import type { Awaitable } from '../contracts/common.ts'
import type { TransactionCompanion } from '../contracts/db.ts'
import type {
  BusTransport,
  DeadLetter,
  DeadLetterPage,
  EventRecord,
  FailureListener,
  PublicationCheck,
  Subscription,
  TopologyEntry,
} from '../contracts/event-bus.ts'
import type { Payload, PublishOptions } from '../contracts/events.ts'
import type { ScopeSource } from '../contracts/tracing.ts'
import { causality } from '../core/causality/context.ts'
import { NO_TRACE_CONTEXT } from '../core/causality/trace-context.ts'
import type { EventLog } from '../runtime/event-log/event-log.ts'
import { TransactionEvents } from '../runtime/event-log/transaction-events.ts'
import type { EventServer } from '../runtime/events/event-server.ts'
import { encodePayload, type Publisher, publicationOf } from '../runtime/events/publication.ts'
import { recordOf } from '../runtime/events/trace-ring.ts'
import type { EventServices } from '../runtime/host/services.ts'
import { added, tellAll } from '../runtime/kernel/listeners.ts'
import type { EventFrame } from '../transport/frames/event-frame.ts'
import type { EventRequest, FailureRecord, Feed, SubscriptionManifest } from '../transport/messages.ts'

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

/** Failures that a lane remembers at most of each kind. */
const FAILURES_KNOWN = 1000

const keyOf = ({ failure }: FailureRecord): string => `${failure.event_id} ${failure.subscriber}`

export interface LaneBusOptions {
  services: EventServices
  events: EventServer
  log: EventLog
  /** Takes an event that a transaction has published and committed. */
  handOn: (frame: EventFrame) => void
  onSubscribe: (subscriberIndex: number, subscription: SubscriptionManifest) => void
  onUnsubscribe: (subscriberIndex: number) => void
  onListen: (feed: Feed, on: boolean) => void
  onListenerFault: (kind: string, thrown: unknown) => void
}

/** The event bus of a lane. The publisher takes its events, and the lane server brings the deliveries. */
export class LaneBus implements BusTransport {
  readonly #options: LaneBusOptions
  readonly #listeners: ((record: EventRecord) => void)[] = []
  readonly #failureListeners: FailureListener[] = []
  /** Failures that this lane's listeners know, and the primary's record of which is on the way, with their number. */
  readonly #ownFailures = new Map<string, number>()
  /** Failures that the primary has told of. */
  readonly #fedFailures = new Set<string>()
  /** Subscribing plugins by event, as of the last snapshot: for the records that this lane's own listeners get at once. */
  subscribersOf: Record<string, string[]> = {}

  publisher: Publisher
  checkPublication: PublicationCheck | null = null
  /** Null while tracing is off. */
  tracing: ScopeSource | null = null

  constructor(publisher: Publisher, options: LaneBusOptions) {
    this.publisher = publisher
    this.#options = options
  }

  // Not async, which would cost two more promises. The tool turns an error into a rejection.
  publish(emitter: string, event: string, payload: Payload, options: PublishOptions): Promise<string> {
    const { json, keys } = encodePayload(event, payload)
    const frame = publicationOf(emitter, event, json, keys, options)
    const taken = this.publisher.publish(frame)
    this.#tellPublished(frame)
    return taken
  }

  beginTransaction(emitter: string): TransactionCompanion {
    const { log } = this.#options
    return new TransactionEvents({ emitter, log, check: this.checkPublication, deliver: this.#deliver })
  }

  /** Takes an event that a transaction has committed. */
  readonly #deliver = (frame: EventFrame): void => {
    this.#options.handOn(frame)
    this.#tellPublished(frame)
  }

  /** This thread's own listeners get the record at once. */
  #tellPublished(frame: EventFrame): void {
    if (this.#listeners.length === 0) return
    const subscribers = this.subscribersOf[frame.event] ?? []
    this.#tell(recordOf({ ...frame, subscribers }))
  }

  async request(emitter: string, event: string, payload: Payload, timeoutMs: number): Promise<Payload> {
    const { json, keys } = encodePayload(event, payload)
    const context = causality.getStore()
    const trace = context?.trace?.traceContext ?? NO_TRACE_CONTEXT
    const request: EventRequest = {
      emitter,
      event,
      payload: json,
      payloadKeys: keys,
      parentId: context?.eventId ?? null,
      requestId: context?.requestId ?? null,
      trace,
    }
    return parseJson(await this.#options.services.requestFor(request, timeoutMs)) as Payload
  }

  subscribe(subscription: Subscription): () => void {
    const { subscriberIndex, identity } = this.#options.events.add(subscription)
    const { owner, event, options } = subscription
    this.#options.onSubscribe(subscriberIndex, { plugin: owner.name, event, identity, options })
    let isOn = true
    return () => {
      if (!isOn) return
      isOn = false
      this.#options.events.remove(subscriberIndex)
      this.#options.onUnsubscribe(subscriberIndex)
    }
  }

  addListener(listener: (record: EventRecord) => void): () => void {
    return this.#listen('traces', this.#listeners, listener)
  }

  addFailureListener(listener: FailureListener): () => void {
    return this.#listen('failures', this.#failureListeners, listener)
  }

  #listen<T>(feed: Feed, list: T[], listener: T): () => void {
    if (list.length === 0) this.#options.onListen(feed, true)
    const remove = added(list, listener)
    return () => {
      remove()
      if (list.length === 0) this.#options.onListen(feed, false)
    }
  }

  /** A delivery has failed for good in this lane: its own listeners hear of it at once, and the primary's record of it brings nothing new. */
  failedHere(record: FailureRecord): void {
    if (this.#failureListeners.length === 0) return
    const key = keyOf(record)
    // It had taken too long, and the primary has given it up before.
    if (this.#fedFailures.has(key)) return
    if (this.#ownFailures.size >= FAILURES_KNOWN) this.#ownFailures.clear()
    this.#ownFailures.set(key, (this.#ownFailures.get(key) ?? 0) + 1)
    this.#tellFailure(record)
  }

  /** Records of other threads. */
  fed(records: readonly EventRecord[], failures: readonly FailureRecord[]): void {
    for (const record of records) this.#tell(record)
    for (const record of failures) {
      const key = keyOf(record)
      const own = this.#ownFailures.get(key)
      if (own === undefined) {
        if (this.#fedFailures.size >= FAILURES_KNOWN) this.#fedFailures.clear()
        this.#fedFailures.add(key)
        this.#tellFailure(record)
      } else if (own === 1) this.#ownFailures.delete(key)
      else this.#ownFailures.set(key, own - 1)
    }
  }

  #tellFailure({ failure, requestId, trace }: FailureRecord): void {
    const scope = trace === NO_TRACE_CONTEXT ? null : (this.tracing?.scope(trace) ?? null)
    causality.run({ eventId: failure.event_id, requestId, trace: scope, origin: null }, () =>
      tellAll(this.#failureListeners, failure, (thrown) => this.#options.onListenerFault('failure listener', thrown)),
    )
  }

  #tell(record: EventRecord): void {
    tellAll(this.#listeners, record, (thrown) => this.#options.onListenerFault('event listener', thrown))
  }

  history(): Awaitable<EventRecord[]> {
    return this.#options.services.history()
  }
  topology(): Awaitable<Record<string, TopologyEntry>> {
    return this.#options.services.topology()
  }
  deadLetters(page: DeadLetterPage = {}): Awaitable<DeadLetter[]> {
    return this.#options.services.deadLetters(page)
  }
  replayDeadLetter(id: string): Awaitable<boolean> {
    return this.#options.services.replayDeadLetter(id)
  }
  editDeadLetter(id: string, event: string, payload: Payload): Awaitable<boolean> {
    const { json, keys } = encodePayload(event, payload)
    return this.#options.services.editLetter(id, json, keys)
  }
  deleteDeadLetter(id: string): Awaitable<boolean> {
    return this.#options.services.deleteDeadLetter(id)
  }
}
