// The stored events of a process: on a file in the event store, on a server in the event log.

import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { asBytes } from '../../transport/frames/event-frame.ts'
import type { LogChanges } from '../../transport/log-changes.ts'
import { EventStore, type EventStoreOptions } from '../event-store/event-store.ts'
import type { DurableLogOptions } from '../event-store/store-options.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import { DurableLog } from './durable-log.ts'

export interface DurableOptions extends Omit<DurableLogOptions, 'write'>, Pick<EventStoreOptions, 'isAlive'> {
  writeLog: (changes: LogChanges) => Promise<void>
  writeStore: EventStoreOptions['write']
}

/** Which of the two it is, is known once the tool `db` is there. */
export class Durable {
  readonly #options: DurableOptions
  #log: DurableLog | null = null
  #store: EventStore | null = null

  constructor(options: DurableOptions) {
    this.#options = options
  }

  get #used(): DurableLog | EventStore {
    if (this.#log === null && this.#store === null) {
      const { writeLog, writeStore } = this.#options
      if (this.#options.log.isOnServer) this.#log = new DurableLog({ ...this.#options, write: writeLog })
      else this.#store = new EventStore({ ...this.#options, write: writeStore })
    }
    return (this.#log ?? this.#store)!
  }

  /** Null on a server. */
  get store(): EventStore | null {
    return this.#store
  }

  /** Null on a file. */
  get log(): DurableLog | null {
    return this.#log
  }

  get isOpen(): boolean {
    return this.#options.log.memory.isOpen
  }

  get fault(): string | null {
    return (this.#log ?? this.#store)?.fault ?? null
  }

  get isTaken(): boolean {
    return (this.#log ?? this.#store)?.isTaken ?? false
  }

  prepare(): Promise<void> {
    return this.#used.prepare()
  }

  open(): Promise<void> {
    return this.#used.open()
  }

  async adopt(): Promise<void> {
    await (this.#log ?? this.#store)?.adopt()
  }

  /** A thread has stored an event. @param event its payload is text */
  taken(event: EventFrame, origin: SubscriberThread | null): void {
    this.take(this.#store === null ? asBytes(event) : event, origin)
  }

  /** @param event on a server its payload is a string of bytes */
  take(event: EventFrame, origin: SubscriberThread | null): void {
    if (this.#store !== null) this.#store.take(event, origin)
    else this.#log?.feed.take(event, origin)
  }

  /** A lane has said that somebody subscribes, and the hub knows it. */
  subscribed(): void {
    this.#store?.subscribed()
  }

  /** @param hasDied false when it was told to end */
  laneGone(hasDied: boolean): void {
    if (hasDied) this.#log?.feed.laneGone()
    this.#store?.reader.rangAll()
  }

  end(): void {
    ;(this.#log ?? this.#store)?.end()
  }

  async close(deadlineMs: number): Promise<void> {
    await (this.#log ?? this.#store)?.close(deadlineMs)
  }

  async leave(): Promise<void> {
    await (this.#log ?? this.#store)?.leave()
  }
}
