// The bus of the primary's own plugins, and the primary as a thread with subscribers.
import type { EventRecord, FailureListener, LostReason, Subscription } from '../../contracts/event-bus.ts'
import type { Payload, PublishOptions } from '../../contracts/events.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { machineMs } from '../../core/schedule/clock.ts'
import type { ThreadStore } from '../../runtime/event-store/thread-store.ts'
import { encodePayload, publicationOf } from '../../runtime/events/publication.ts'
import { priorityDigit } from '../../runtime/events/shares.ts'
import { ThreadBus } from '../../runtime/host/bus.ts'
import type { EventServices } from '../../runtime/host/services.ts'
import { tellAll } from '../../runtime/kernel/listeners.ts'
import type { ThreadKernel } from '../../runtime/kernel/thread.ts'
import { type EventFrame, textOf } from '../../transport/frames/event-frame.ts'
import type { SubscriptionManifest } from '../../transport/messages.ts'
import { DeliveryCount } from '../dispatch/lane-answers.ts'
import type { SubscriberInstance, SubscriberThread } from './consumer.ts'
import { listDeadLetters } from './dead-letters.ts'
import type { EventDriver } from './event-driver.ts'
import type { Hub } from './hub.ts'

/** Maximum number of deliveries in flight at subscribers of the primary. */
export const PRIMARY_MAX_DELIVERIES = 1024

/** What the hub alone cannot answer. */
export type AskedServices = Pick<
  EventServices,
  'cancel' | 'followed' | 'queues' | 'deliveries' | 'setPaused' | 'runNow'
>

/** The bus of the primary's own plugins. For the hub, the primary is one more thread with subscribers. */
export class PrimaryBus extends ThreadBus implements SubscriberThread {
  readonly threadId = 0
  readonly isQuarantine = false
  readonly isStill = false
  readonly heldMs = 0
  readonly #hub: Hub
  readonly #driver: () => EventDriver
  /** Ends a subscription at the hub, by subscriber index. */
  readonly #leave = new Map<number, () => void>()
  readonly #deliveries: DeliveryCount

  /** The event store and the receiver of its events; null without a store. */
  log: {
    log: ThreadStore
    take: (frame: EventFrame) => void
    cancelled: () => void
    moved: (event: string, dueMs: number) => void
  } | null = null

  constructor(kernel: ThreadKernel, hub: Hub, driver: () => EventDriver, asked: AskedServices) {
    super(kernel, eventServices(hub, driver, asked))
    this.#hub = hub
    this.#driver = driver
    this.#deliveries = new DeliveryCount(hub)
    this.events.onHeartbeat = (deliveryId) => hub.heartbeat(deliveryId)
  }

  // ── as a thread that the hub delivers to ──────────────────────────────────

  get deliveriesInFlight(): number {
    return this.#deliveries.count
  }

  get hasRoom(): boolean {
    return this.#deliveries.count < PRIMARY_MAX_DELIVERIES
  }

  get room(): number {
    return PRIMARY_MAX_DELIVERIES - this.#deliveries.count
  }

  /** Handled in a later turn of the loop, as in any other thread: a publisher never runs its subscribers. */
  send(deliveryId: number, frame: EventFrame): boolean {
    this.#deliveries.count++
    const own = { ...frame, payload: textOf(frame) }
    this.#hub.clock.turn(() => {
      // Its limit has let it begin, and no longer counts it.
      if (own.beginBy !== 0 && machineMs() > own.beginBy) this.#deliveries.unbegun([deliveryId])
      else this.events.handle(deliveryId, own, this.#deliveries)
    })
    return true
  }

  lose(deliveryId: number, reason: LostReason): void {
    this.events.lose(deliveryId, reason)
  }

  abandon(deliveryId: number, reason: LostReason): void {
    this.#deliveries.abandon(deliveryId)
    this.lose(deliveryId, reason)
  }

  // ── as a transport ────────────────────────────────────────────────────────

  async publish(emitter: string, event: string, payload: Payload, options: PublishOptions): Promise<string> {
    const { json, keys } = encodePayload(event, payload)
    const publication = publicationOf(emitter, event, json, keys, options)
    publication.shares = this.events.sharesOf(event, json, priorityDigit(options))
    return this.#driver().publish(publication, this)
  }

  protected get threadStore(): ThreadStore | null {
    return this.log?.log ?? null
  }

  protected readonly deliver = (frame: EventFrame): void => {
    if (this.log === null) void this.#driver().publish(frame, this)
    else this.log.take(frame)
  }

  protected readonly cancelled = (): void => this.log?.cancelled()

  protected readonly moved = (event: string, dueMs: number): void => this.log?.moved(event, dueMs)

  override subscribe(subscription: Subscription): () => void {
    const { owner, event, options } = subscription
    // Only the single thread of a plugin test has transactions for events.
    if (options.transaction === true && this.events.transactions === null) {
      const wanted = 'transaction: true is for plugins of the lanes: a commit in the primary would hold up all requests'
      throw new HeddleError('EVENT_OPTIONS_INVALID', `${owner.name} subscribes to ${event}: ${wanted}`)
    }
    if (subscription.shares.length > 0 && this.log !== null) {
      const wanted =
        'fair and limit.by are for plugins of the lanes: a publisher in a lane does not know the functions of the primary'
      throw new HeddleError('EVENT_OPTIONS_INVALID', `${owner.name} subscribes to ${event}: ${wanted}`)
    }
    return super.subscribe(subscription)
  }

  protected subscribed(subscriberIndex: number, { plugin, event, identity, options }: SubscriptionManifest): void {
    const instance: SubscriberInstance = {
      thread: this,
      subscriberIndex,
      plugin,
      identity,
      isPaused: false,
    }
    this.#leave.set(subscriberIndex, this.#hub.subscribe(event, options.group ?? identity, options, instance))
  }

  protected unsubscribed(subscriberIndex: number): void {
    this.#leave.get(subscriberIndex)?.()
    this.#leave.delete(subscriberIndex)
  }

  addListener(listener: (record: EventRecord) => void): () => void {
    return this.#hub.records.addListener((record) =>
      tellAll([listener], record, (thrown) => this.kernel.sinkFault('event listener', thrown)),
    )
  }

  addFailureListener(listener: FailureListener): () => void {
    return this.#hub.records.addFailureListener(listener)
  }
}

/** Requests of plugins in all threads to the hub and the event store. */
function eventServices(hub: Hub, driver: () => EventDriver, asked: AskedServices): EventServices {
  return {
    requestFor: ({ emitter, event, payload, payloadKeys, parentId, ancestors, requestId, trace }, timeoutMs) => {
      const cause = { eventId: parentId, ancestors, requestId, trace: { traceContext: trace }, origin: null }
      return driver().request(publicationOf(emitter, event, payload, payloadKeys, {}, cause), null, timeoutMs)
    },
    publishUnique: (frame) => driver().publish(frame, null),
    ...asked,
    history: () => hub.records.history(),
    topology: () => hub.topology(),
    deadLetters: (page = {}) => listDeadLetters(driver().deadLetters, page),
    deadLetterPayload: (id) => driver().deadLetters.payload(id),
    replayDeadLetter: (id) => driver().deadLetters.replay(id),
    editLetter: (id, json, keys) => driver().deadLetters.edit(id, json, keys),
    deleteDeadLetter: (id) => driver().deadLetters.delete(id),
  }
}
