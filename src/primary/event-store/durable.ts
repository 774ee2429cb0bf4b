// The event store as other parts of the process see it.
import type { Cancelled } from '../../contracts/event-bus.ts'
import type { CancelTarget } from '../../contracts/events.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { storeError } from '../../runtime/event-store/thread-store.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import { EventIndex } from './event-index.ts'
import { EventStore } from './event-store.ts'
import { FollowedEvents } from './followed.ts'
import type { EventStoreOptions } from './store-options.ts'

export class Durable {
  readonly #options: EventStoreOptions
  #store: EventStore | null = null

  /** Known also where events are in memory alone. */
  readonly followed: FollowedEvents
  readonly #index: EventIndex

  constructor(options: Omit<EventStoreOptions, 'index' | 'reported'>) {
    const { hub, log } = options
    this.#index = new EventIndex(() => log.database, log.clock, log.chance)
    this.#options = { ...options, index: this.#index, reported: (ids) => this.followed.rang(ids) }
    this.followed = new FollowedEvents({
      hub,
      clock: log.clock,
      database: () => (log.hasDatabase && log.memory.isOpen ? log.database : null),
      isOpening: () => log.hasDatabase && !log.memory.isOpen,
      index: this.#index,
      cancels: () => this.#store?.cancels ?? null,
    })
  }

  /** The dialect is known once the tool `db` is installed. */
  get #used(): EventStore {
    this.#store ??= new EventStore(this.#options)
    return this.#store
  }

  /** Null until it is used. */
  get store(): EventStore | null {
    return this.#store
  }

  get isOpen(): boolean {
    return this.#options.log.memory.isOpen
  }

  get fault(): string | null {
    return this.#store?.fault ?? null
  }

  prepare(): Promise<void> {
    return this.#used.prepare()
  }

  open(): Promise<void> {
    return this.#used.open()
  }

  async adopt(): Promise<void> {
    await this.#store?.adopt()
  }

  /** A thread has stored an event. @param event without its payload */
  take(event: EventFrame, origin: SubscriberThread | null): void {
    this.#store?.take(event, origin)
  }

  /** Takes events back. @throws EVENT_BUS_UNAVAILABLE */
  async cancel(what: CancelTarget): Promise<Cancelled> {
    const { hub, log } = this.#options
    if (this.#store === null) return hub.cancelMeant(what)
    try {
      // Some may be stored.
      await log.opened()
      return await this.#store.cancels.cancel(what)
    } catch (error) {
      throw error instanceof DbError ? storeError(error) : error
    }
  }

  /** A committed transaction has taken events back. */
  cancelled(): void {
    this.#store?.cancels.committed()
  }

  /** Reports of an event are stored. */
  reported(id: string): void {
    this.followed.touched(id)
    this.#store?.reported(id)
  }

  /** A stored event that waits has got another due time, milliseconds since the epoch. */
  moved(event: string, dueMs: number): void {
    this.#store?.moved(event, dueMs)
  }

  /** See `EventStore`. */
  isBusy(isWithRunning: boolean): boolean {
    return this.#store?.isBusy(isWithRunning) === true
  }

  /** A test has moved the time: what is kept for less is forgotten. */
  async timeMoved(): Promise<void> {
    if (this.isOpen) await this.#store?.pruneReports()
    this.followed.forgetEnded()
  }

  /** A lane has subscribed after the boot, and the hub knows it. */
  subscribed(): void {
    this.#store?.subscribed()
  }

  laneGone(): void {
    this.#store?.laneGone()
  }

  end(): void {
    this.#store?.end()
  }

  async close(deadlineMs: number): Promise<void> {
    await this.#store?.close(deadlineMs)
  }

  async leave(): Promise<void> {
    await this.#store?.leave()
  }
}
