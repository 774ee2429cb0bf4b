// The bus of a lane's plugins: publishes through the lane's publisher, and hears what other threads record.
import type { EventRecord, FailureListener } from '../contracts/event-bus.ts'
import type { Payload, PublishOptions } from '../contracts/events.ts'
import type { ScopeSource } from '../contracts/tracing.ts'
import { causality, NO_TRACE_CONTEXT } from '../core/causality/context.ts'
import type { ThreadStore } from '../runtime/event-store/thread-store.ts'
import { encodePayload, type Publisher, publicationOf } from '../runtime/events/publication.ts'
import { priorityDigit } from '../runtime/events/shares.ts'
import { recordOf } from '../runtime/events/trace-ring.ts'
import { ThreadBus } from '../runtime/host/bus.ts'
import type { EventServices } from '../runtime/host/services.ts'
import { added, tellAll } from '../runtime/kernel/listeners.ts'
import type { ThreadKernel } from '../runtime/kernel/thread.ts'
import type { EventFrame } from '../transport/frames/event-frame.ts'
import type { FailureRecord, Feed, SubscriptionManifest, ToPrimary } from '../transport/messages.ts'

/** Failures that a lane remembers at most of each kind. */
const FAILURES_KNOWN = 1000

const keyOf = ({ failure }: FailureRecord): string => `${failure.event_id} ${failure.subscriber}`

export interface LaneBusOptions {
  services: EventServices
  log: ThreadStore
  /** Publishes through the event store. */
  stored: Publisher
  /** Takes an event that a transaction has published and committed. */
  handOn: (frame: EventFrame) => void
  post: (message: ToPrimary) => void
}

/** The event bus of a lane. The publisher takes its events, and the lane server brings the deliveries. */
export class LaneBus extends ThreadBus {
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
  protected readonly threadStore: ThreadStore
  /** Null while tracing is off. */
  tracing: ScopeSource | null = null

  constructor(kernel: ThreadKernel, publisher: Publisher, options: LaneBusOptions) {
    super(kernel, options.services)
    this.publisher = publisher
    this.threadStore = options.log
    this.#options = options
    this.events.onHeartbeat = (delivery) => options.post({ type: 'heartbeat', delivery })
  }

  // Not async, which would cost two more promises. The tool turns an error into a rejection.
  publish(emitter: string, event: string, payload: Payload, options: PublishOptions): Promise<string> {
    const { json, keys } = encodePayload(event, payload)
    const frame = publicationOf(emitter, event, json, keys, options)
    frame.shares = this.events.sharesOf(event, json, priorityDigit(options))
    if (frame.unique !== null) return this.#publishUnique(frame)
    const taken = this.publisher.publish(frame)
    this.#tellPublished(frame)
    return taken
  }

  /** The store knows whether there is one already, or the hub. */
  async #publishUnique(frame: EventFrame): Promise<string> {
    const { log, stored, services } = this.#options
    const id = await (log.hasDatabase ? stored.publish(frame) : services.publishUnique(frame))
    if (id === frame.id) this.#tellPublished(frame)
    return id
  }

  protected readonly deliver = (frame: EventFrame): void => {
    this.#options.handOn(frame)
    this.#tellPublished(frame)
  }

  protected readonly cancelled = (): void => this.#options.post({ type: 'cancelled' })

  protected readonly moved = (event: string, dueMs: number): void =>
    this.#options.post({ type: 'event-moved', event, dueMs })

  /** This thread's own listeners get the record at once. */
  #tellPublished(frame: EventFrame): void {
    if (this.#listeners.length === 0) return
    const subscribers = this.subscribersOf[frame.event] ?? []
    this.#tell(recordOf({ ...frame, subscribers }))
  }

  protected subscribed(subscriberIndex: number, subscription: SubscriptionManifest): void {
    // Before that, they go to the primary with the manifest.
    if (!this.kernel.isBooted) return
    this.threadStore.memory.subscribing()
    this.#options.post({ type: 'subscribe', subscriberIndex, subscription })
  }

  protected unsubscribed(subscriberIndex: number): void {
    if (this.kernel.isBooted) this.#options.post({ type: 'unsubscribe', subscriberIndex })
  }

  addListener(listener: (record: EventRecord) => void): () => void {
    return this.#listen('traces', this.#listeners, listener)
  }

  addFailureListener(listener: FailureListener): () => void {
    return this.#listen('failures', this.#failureListeners, listener)
  }

  #listen<T>(feed: Feed, list: T[], listener: T): () => void {
    if (list.length === 0) this.#options.post({ type: 'listen', feed, on: true })
    const remove = added(list, listener)
    return () => {
      remove()
      if (list.length === 0) this.#options.post({ type: 'listen', feed, on: false })
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

  #tellFailure({ failure, ancestors, requestId, trace }: FailureRecord): void {
    const scope = trace === NO_TRACE_CONTEXT ? null : (this.tracing?.scope(trace) ?? null)
    causality.run({ eventId: failure.event_id, ancestors, requestId, trace: scope, origin: null }, () =>
      tellAll(this.#failureListeners, failure, (thrown) => this.kernel.sinkFault('failure listener', thrown)),
    )
  }

  #tell(record: EventRecord): void {
    tellAll(this.#listeners, record, (thrown) => this.kernel.sinkFault('event listener', thrown))
  }
}
