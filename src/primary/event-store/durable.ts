// The event store as other parts of the process see it.
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import { EventStore } from './event-store.ts'
import type { EventStoreOptions } from './store-options.ts'

export class Durable {
  readonly #options: EventStoreOptions
  #store: EventStore | null = null

  constructor(options: EventStoreOptions) {
    this.#options = options
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

  /** A lane has subscribed after the boot, and the hub knows it. */
  subscribed(): void {
    this.#store?.subscribed()
  }

  laneGone(): void {
    this.#store?.rangAll()
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
