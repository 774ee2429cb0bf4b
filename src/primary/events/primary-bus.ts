import type { Awaitable } from '../../contracts/common.ts'
import type { TransactionCompanion } from '../../contracts/db.ts'
import type {
  BusTransport,
  DeadLetter,
  DeadLetterPage,
  EventRecord,
  FailureListener,
  PublicationCheck,
  Subscription,
  TopologyEntry,
} from '../../contracts/event-bus.ts'
import type { Payload, PublishOptions } from '../../contracts/events.ts'
import type { CodeTracing } from '../../contracts/tracing.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import { TransactionEvents } from '../../runtime/event-log/transaction-events.ts'
import { type DeliverySink, EventServer, type HandledEvents } from '../../runtime/events/event-server.ts'
import { encodePayload, publicationOf } from '../../runtime/events/publication.ts'
import { tellAll } from '../../runtime/kernel/listeners.ts'
import { type EventFrame, textOf } from '../../transport/frames/event-frame.ts'
import { DeliveryCount } from '../dispatch/delivery-count.ts'
import type { SubscriberInstance, SubscriberThread } from './consumer.ts'
import type { EventDriver } from './event-driver.ts'
import type { Hub } from './hub.ts'

/** Deliveries in flight at subscribers of the primary at most. */
export const PRIMARY_MAX_DELIVERIES = 1024

/** The bus of the primary's own plugins. For the hub, the primary is one more thread with subscribers. */
export class PrimaryBus implements BusTransport, SubscriberThread {
  readonly isQuarantine = false
  readonly isStill = false
  readonly heldMs = 0
  readonly #hub: Hub
  readonly #driver: () => EventDriver
  readonly #events: EventServer
  /** Takes the answers to the hub's deliveries. */
  readonly #hubSink: DeliverySink
  readonly #subscribed = new Set<{ plugin: string; unsubscribe: () => void }>()
  readonly #deliveries = new DeliveryCount()
  readonly #onListenerFault: (thrown: unknown) => void

  checkPublication: PublicationCheck | null = null
  /** The durable log, and what takes the events that it has; null where there is none. */
  log: { log: EventLog; take: (frame: EventFrame) => void } | null = null

  /** Set where a single thread runs plugins for a test of them. */
  set inbox(inbox: HandledEvents | null) {
    this.#events.inbox = inbox
  }
  get inbox(): HandledEvents | null {
    return this.#events.inbox
  }

  set tracing(tracing: CodeTracing) {
    this.#events.tracing = tracing
  }

  set onFailedAttempt(told: EventServer['onFailedAttempt']) {
    this.#events.onFailedAttempt = told
  }

  /** @param maxSubscriptions EVENT_BUS_MAX_SUBSCRIPTIONS. @param waitsForTools EVENT_BUS_WAIT_FOR_TOOLS; their defaults when left out */
  constructor(
    hub: Hub,
    driver: () => EventDriver,
    onListenerFault: (thrown: unknown) => void,
    maxSubscriptions?: number,
    waitsForTools?: boolean,
  ) {
    this.#events = new EventServer(maxSubscriptions, waitsForTools)
    this.#hub = hub
    this.#driver = driver
    this.#onListenerFault = onListenerFault
    this.#hubSink = {
      delivered: (id) => {
        this.#deliveries.answered(id)
        hub.delivered(id)
      },
      reply: (id, json) => {
        this.#deliveries.answered(id)
        hub.deliveryReply(id, json)
      },
      failed: (id, error) => {
        this.#deliveries.answered(id)
        hub.deliveryFailed(id, error)
      },
    }
  }

  // ── as a thread that the hub delivers to ──────────────────────────────────

  get deliveriesInFlight(): number {
    return this.#deliveries.count
  }

  get hasRoom(): boolean {
    return this.#deliveries.count < PRIMARY_MAX_DELIVERIES
  }

  /** Handled in a later turn of the loop, as in any other thread: a publisher never runs its subscribers. */
  send(deliveryId: number, frame: EventFrame): boolean {
    this.#deliveries.sent()
    const own = { ...frame, payload: textOf(frame) }
    this.#hub.clock.turn(() => this.#events.handle(deliveryId, own, this.#hubSink))
    return true
  }

  abandon(deliveryId: number): void {
    this.#deliveries.abandon(deliveryId)
  }

  // ── as a transport ────────────────────────────────────────────────────────

  async publish(emitter: string, event: string, payload: Payload, options: PublishOptions): Promise<string> {
    const { json, keys } = encodePayload(event, payload)
    const publication = publicationOf(emitter, event, json, keys, options)
    await this.#driver().publish(publication, this)
    return publication.id
  }

  beginTransaction(emitter: string): TransactionCompanion {
    const log = this.log?.log ?? null
    return new TransactionEvents({ emitter, log, check: this.checkPublication, deliver: this.#deliver })
  }

  /** Takes an event that a transaction has committed. */
  readonly #deliver = (frame: EventFrame): void => {
    if (this.log === null) void this.#driver().publish(frame, this)
    else this.log.take(frame)
  }

  async request(emitter: string, event: string, payload: Payload, timeoutMs: number): Promise<Payload> {
    const { json, keys } = encodePayload(event, payload)
    const publication = publicationOf(emitter, event, json, keys, {})
    return JSON.parse(await this.#driver().request(publication, this, timeoutMs)) as Payload
  }

  /** Makes a request for a lane, whose handler is the cause. @returns the reply's JSON text */
  requestFor(
    from: Pick<EventFrame, 'emitter' | 'event' | 'payload' | 'payloadKeys' | 'parentId' | 'requestId' | 'trace'>,
    timeoutMs: number,
  ): Promise<string> {
    const { emitter, event, payload, payloadKeys, parentId, requestId, trace } = from
    const cause = { eventId: parentId, requestId, trace: { traceContext: trace }, origin: null }
    return this.#driver().request(publicationOf(emitter, event, payload, payloadKeys, {}, cause), null, timeoutMs)
  }

  subscribe(subscription: Subscription): () => void {
    const { owner, event, options } = subscription
    if (options.transaction === true && this.inbox === null) {
      const wanted = 'transaction: true is for plugins of the lanes: a commit in the primary would hold up all requests'
      throw new HeddleError('EVENT_OPTIONS_INVALID', `${owner.name} subscribes to ${event}: ${wanted}`)
    }
    const { subscriberIndex, identity } = this.#events.add(subscription)
    const instance: SubscriberInstance = {
      thread: this,
      subscriberIndex,
      plugin: owner.name,
      identity,
      isPaused: false,
      isHeldBack: false,
    }
    const leave = this.#hub.subscribe(event, options.group ?? identity, options, instance)
    const unsubscribe = (): void => {
      if (!this.#subscribed.delete(subscribed)) return
      this.#events.remove(subscriberIndex)
      leave()
    }
    const subscribed = { plugin: owner.name, unsubscribe }
    this.#subscribed.add(subscribed)
    return unsubscribe
  }

  /** Removes the subscriptions of a plugin that has failed. */
  drop(plugin: string): void {
    for (const each of [...this.#subscribed]) if (each.plugin === plugin) each.unsubscribe()
  }

  addListener(listener: (record: EventRecord) => void): () => void {
    return this.#hub.records.addListener((record) => tellAll([listener], record, this.#onListenerFault))
  }

  addFailureListener(listener: FailureListener): () => void {
    return this.#hub.records.addFailureListener(listener)
  }

  history(): EventRecord[] {
    return this.#hub.records.history()
  }
  topology(): Record<string, TopologyEntry> {
    return this.#hub.topology()
  }
  deadLetters(page: DeadLetterPage = {}): Awaitable<DeadLetter[]> {
    return this.#driver().deadLetters.list(page)
  }
  replayDeadLetter(id: string): Awaitable<boolean> {
    return this.#driver().deadLetters.replay(id)
  }
  editDeadLetter(id: string, event: string, payload: Payload): Awaitable<boolean> {
    const { json, keys } = encodePayload(event, payload)
    return this.editLetter(id, json, keys)
  }
  /** @param keys as `encodePayload` gives them */
  editLetter(id: string, json: string, keys: string): Awaitable<boolean> {
    return this.#driver().deadLetters.edit(id, json, keys)
  }
  deleteDeadLetter(id: string): Awaitable<boolean> {
    return this.#driver().deadLetters.delete(id)
  }
}
