import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'
import type { Awaitable } from '../../contracts/http.ts'
import { asBytes, type EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from './consumer.ts'
import type { Hub } from './hub.ts'

/** The transport of this process's events. Payloads are JSON text. */
export interface EventDriver {
  /** Takes an event. @throws or rejects with EVENT_BUS_FULL, EVENT_BUS_UNAVAILABLE */
  publish(event: EventFrame, origin: SubscriberThread | null): Awaitable<void>
  /** Publishes and resolves with the first object that a subscriber returns, as JSON. */
  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string>
  deadLetters(page: DeadLetterPage): Awaitable<DeadLetter[]>
  /** False when there is no such dead letter, or nobody to take it. */
  replayDeadLetter(id: string): Awaitable<boolean>
  /** @param json the new payload. @param keys its keys. @throws EVENT_OPTIONS_INVALID where letters cannot be edited */
  editDeadLetter(id: string, json: string, keys: string): Awaitable<boolean>
  deleteDeadLetter(id: string): Awaitable<boolean>
}

/** The dead letters of a process. */
export interface Letters {
  list(page: DeadLetterPage): Awaitable<DeadLetter[]>
  replay(id: string): Awaitable<boolean>
  edit(id: string, json: string, keys: string): Awaitable<boolean>
  delete(id: string): Awaitable<boolean>
}

/** Those in the hub's memory alone. */
export class HubLetters implements Letters {
  readonly #hub: Hub

  constructor(hub: Hub) {
    this.#hub = hub
  }

  list(page: DeadLetterPage): DeadLetter[] {
    return this.#hub.records.deadLetters(page)
  }
  replay(id: string): boolean {
    return this.#hub.replayDeadLetter(id)
  }
  edit(id: string, json: string, keys: string): boolean {
    return this.#hub.records.editDeadLetter(id, json, keys)
  }
  delete(id: string): boolean {
    return this.#hub.records.deleteDeadLetter(id)
  }
}

/** Keeps the events in the memory of this process: the hub delivers them all. What transactions publish is in the database all the same. */
export class InProcessDriver implements EventDriver {
  readonly #hub: Hub
  readonly #letters: Letters

  /** @param letters those of the hub, and those in the database */
  constructor(hub: Hub, letters: Letters) {
    this.#hub = hub
    this.#letters = letters
  }

  publish(event: EventFrame, origin: SubscriberThread | null): void {
    this.#hub.publish(asBytes(event), origin)
  }

  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    return this.#hub.request(asBytes(event), origin, timeoutMs)
  }

  deadLetters(page: DeadLetterPage): Awaitable<DeadLetter[]> {
    return this.#letters.list(page)
  }
  replayDeadLetter(id: string): Awaitable<boolean> {
    return this.#letters.replay(id)
  }
  editDeadLetter(id: string, json: string, keys: string): Awaitable<boolean> {
    return this.#letters.edit(id, json, keys)
  }
  deleteDeadLetter(id: string): Awaitable<boolean> {
    return this.#letters.delete(id)
  }
}
