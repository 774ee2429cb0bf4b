// The event bus of a thread: what its plugins publish and subscribe to, in a lane as in the primary.
import type { Awaitable } from '../../contracts/common.ts'
import type { TransactionCompanion } from '../../contracts/db.ts'
import type {
  BusTransport,
  EventRecord,
  FailureListener,
  FollowedEvent,
  FollowOptions,
  PublicationCheck,
  Subscription,
} from '../../contracts/event-bus.ts'
import type { CancelTarget, Payload, PublishOptions } from '../../contracts/events.ts'
import { causality, NO_TRACE_CONTEXT } from '../../core/causality/context.ts'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../core/schedule/clock.ts'
import { Reminder } from '../../core/schedule/repeating-task.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { StoreMemory } from '../../transport/memory/store-memory.ts'
import type { SubscriptionManifest } from '../../transport/messages.ts'
import { type StoreDatabase, storeDatabaseOf } from '../event-store/database.ts'
import { Following } from '../event-store/following.ts'
import { Report } from '../event-store/report.ts'
import { ThreadStore } from '../event-store/thread-store.ts'
import { TransactionEvents } from '../event-store/transaction-events.ts'
import { attemptRecord, EventServer } from '../events/event-server.ts'
import { encodePayload } from '../events/publication.ts'
import type { ThreadKernel } from '../kernel/thread.ts'
import type { EventServices } from './services.ts'

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

/** Shortest interval between two log records about a function that tells no share, milliseconds. */
const SHARE_FAULT_TOLD_MS = 10_000

/** The event store as this thread writes it. */
export function threadStoreOf({ settings, shared, toolbox }: ThreadKernel): ThreadStore {
  const database = (): StoreDatabase | null => storeDatabaseOf(toolbox.get('db'))
  const { eventBusMaxStored: maxStored, eventBusDriver } = settings
  const of = { maxStored, hasBroker: eventBusDriver === 'keyvalue_streams' }
  return new ThreadStore(new StoreMemory(shared.log), database, of, SYSTEM_CLOCK, SYSTEM_CHANCE)
}

/** The bus of a thread's plugins. How an event leaves the thread, and how its records come in, is the thread's own. */
export abstract class ThreadBus implements BusTransport {
  protected readonly kernel: ThreadKernel
  /** Runs the subscribers of this thread. */
  readonly events: EventServer
  /** What is asked of the hub. */
  readonly services: EventServices
  /** The subscriptions that have not ended, by the subscriber's number in this thread. */
  readonly subscriptions = new Map<number, SubscriptionManifest>()
  /** Limits the log of functions that tell no share, by subscriber. */
  readonly #shareFaults = new Reminder(SHARE_FAULT_TOLD_MS)
  checkPublication: PublicationCheck | null = null
  checkCancel: ((what: unknown, options: unknown) => CancelTarget) | null = null

  constructor(kernel: ThreadKernel, services: EventServices) {
    const { eventBusMaxSubscriptions, eventBusWaitForTools } = kernel.settings
    this.kernel = kernel
    this.events = new EventServer(eventBusMaxSubscriptions, eventBusWaitForTools)
    this.services = services
    this.events.onShareFault = (group, event, fault) => {
      if (!this.#shareFaults.isDue(`${group} ${event}`)) return
      const what = `${group} could not tell whose ${event} is, and such events have one share together: ${fault}`
      kernel.writeLog('WARNING', what, 'event_bus')
    }
  }

  abstract publish(emitter: string, event: string, payload: Payload, options: PublishOptions): Promise<string>
  abstract addListener(listener: (record: EventRecord) => void): () => void
  abstract addFailureListener(listener: FailureListener): () => void

  /** Holds what transactions publish; null where there is none. */
  protected abstract readonly threadStore: ThreadStore | null
  /** Takes an event that a transaction has committed. */
  protected abstract readonly deliver: (frame: EventFrame) => void
  /** A committed transaction has taken events back. */
  protected abstract readonly cancelled: () => void
  /** A stored event that waits has got another due time, milliseconds since the epoch. */
  protected abstract readonly moved: (event: string, dueMs: number) => void
  protected abstract subscribed(subscriberIndex: number, subscription: SubscriptionManifest): void
  protected abstract unsubscribed(subscriberIndex: number): void

  /** Logs the attempts of this thread that fail and are not the last ones. */
  logFailedAttempts(): void {
    this.events.onFailedAttempt = (failed) => {
      const { message, fields } = attemptRecord(failed)
      this.kernel.writeLog('WARNING', message, failed.plugin, fields)
    }
  }

  beginTransaction(emitter: string): TransactionCompanion {
    return new TransactionEvents({
      emitter,
      log: this.threadStore,
      check: this.checkPublication,
      checkCancel: this.checkCancel,
      deliver: this.deliver,
      cancelled: this.cancelled,
      moved: this.moved,
      sharesOf: (...of) => this.events.sharesOf(...of),
    })
  }

  follow(id: string, options: FollowOptions): AsyncIterable<FollowedEvent> {
    const parts = {
      followed: async (of: string, seen: string) => this.services.followed(of, seen),
      database: () => storeDatabaseOf(this.kernel.toolbox.get('db')),
    }
    return new Following(parts, id, options)
  }

  /** Lets the handlers of this thread report. @param opened resolves when the tables are there @param reported told of each commit */
  reportThrough(opened: () => Promise<void>, reported: (eventId: string) => void): void {
    const { kernel } = this
    const log = (message: string): void => kernel.writeLog('WARNING', message, 'event_bus')
    const database = (): StoreDatabase | null => storeDatabaseOf(kernel.toolbox.get('db'))
    const parts = { clock: SYSTEM_CLOCK, database, opened, reported, log }
    this.events.reports = { make: (place, isOwn) => new Report(parts, place, isOwn), log }
  }

  storeRefused(): void {
    this.threadStore?.memory.refused()
  }

  async request(emitter: string, event: string, payload: Payload, timeoutMs: number): Promise<Payload> {
    const { json, keys } = encodePayload(event, payload)
    const context = causality.getStore()
    const request = {
      emitter,
      event,
      payload: json,
      payloadKeys: keys,
      parentId: context?.eventId ?? null,
      ancestors: context?.ancestors ?? '',
      requestId: context?.requestId ?? null,
      trace: context?.trace?.traceContext ?? NO_TRACE_CONTEXT,
    }
    return parseJson(await this.services.requestFor(request, timeoutMs)) as Payload
  }

  subscribe(subscription: Subscription): () => void {
    const { subscriberIndex, identity } = this.events.add(subscription)
    const { owner, event, options } = subscription
    const manifest = { plugin: owner.name, event, identity, options }
    this.subscribed(subscriberIndex, manifest)
    this.subscriptions.set(subscriberIndex, manifest)
    return () => this.#unsubscribe(subscriberIndex)
  }

  /** Ends the subscriptions of a plugin that has failed. */
  drop(plugin: string): void {
    for (const [subscriberIndex, each] of this.subscriptions)
      if (each.plugin === plugin) this.#unsubscribe(subscriberIndex)
  }

  #unsubscribe(subscriberIndex: number): void {
    if (!this.subscriptions.delete(subscriberIndex)) return
    this.events.remove(subscriberIndex)
    this.unsubscribed(subscriberIndex)
  }

  editDeadLetter(id: string, event: string, payload: Payload): Awaitable<boolean> {
    const { json, keys } = encodePayload(event, payload)
    return this.services.editLetter(id, json, keys)
  }
}
