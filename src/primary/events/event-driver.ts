import type { Awaitable } from '../../contracts/awaitable.ts'
import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
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
  deleteDeadLetter(id: string): Awaitable<boolean>
}

/** Keeps the events in one process: the hub delivers them all. */
export class InProcessDriver implements EventDriver {
  readonly #hub: Hub

  constructor(hub: Hub) {
    this.#hub = hub
  }

  publish(event: EventFrame, origin: SubscriberThread | null): void {
    this.#hub.publish(asBytes(event), origin)
  }

  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    return this.#hub.request(asBytes(event), origin, timeoutMs)
  }

  deadLetters(page: DeadLetterPage): DeadLetter[] {
    return this.#hub.records.deadLetters(page)
  }
  replayDeadLetter(id: string): boolean {
    return this.#hub.replayDeadLetter(id)
  }
  deleteDeadLetter(id: string): boolean {
    return this.#hub.records.deleteDeadLetter(id)
  }
}

/** The hub keeps a payload's UTF-8 bytes, one character each. */
export const asBytes = (event: EventFrame): EventFrame => ({
  ...event,
  payload: Buffer.from(event.payload).toString('latin1'),
})
