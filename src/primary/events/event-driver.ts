// The transport of a process's events, its in-memory driver, and the publisher of the runtime's own events.
import type { Awaitable } from '../../contracts/common.ts'
import { NO_CAUSE } from '../../core/causality/context.ts'
import { messageOf } from '../../core/errors/description.ts'
import { encodePayload, publicationOf } from '../../runtime/events/publication.ts'
import { asBytes, type EventFrame } from '../../transport/frames/event-frame.ts'
import type { Log } from '../logging/process-log.ts'
import type { SubscriberThread } from './consumer.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Hub } from './hub.ts'

/** The transport of a process's events. Payloads are JSON text. */
export interface EventDriver {
  readonly deadLetters: DeadLetters
  /** Publishes an event. @returns its id, or with `unique` the id of the one that is there. @throws or rejects with EVENT_BUS_FULL, EVENT_BUS_UNAVAILABLE */
  publish(event: EventFrame, origin: SubscriberThread | null): Awaitable<string>
  /** Publishes and resolves with the first object a subscriber returns, as JSON. */
  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string>
}

/** Keeps events in memory: the hub delivers all of them. Events of `tx.publish` and those with `unique` are in the database all the same. */
export class InProcessDriver implements EventDriver {
  readonly deadLetters: DeadLetters
  readonly #hub: Hub
  readonly #store: (event: EventFrame, origin: SubscriberThread | null) => Promise<string> | null

  /**
   * @param deadLetters the hub's own, or with it those in the database
   * @param store publishes an event that a subscriber has one at a time; null without a database
   */
  constructor(
    hub: Hub,
    deadLetters: DeadLetters,
    store: (event: EventFrame, origin: SubscriberThread | null) => Promise<string> | null = () => null,
  ) {
    this.#hub = hub
    this.deadLetters = deadLetters
    this.#store = store
  }

  publish(event: EventFrame, origin: SubscriberThread | null): Awaitable<string> {
    const stored = event.unique === null ? null : this.#store(event, origin)
    return stored ?? this.#hub.publish(asBytes(event), origin)
  }

  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    return this.#hub.request(asBytes(event), origin, timeoutMs)
  }
}

/** Publishes an event of the runtime itself. Failures are logged. @param publish takes an event, or throws */
export function publishOwn(
  emitter: string,
  event: string,
  payload: Record<string, unknown>,
  publish: (event: EventFrame) => Awaitable<unknown>,
  log: Log,
): void {
  const unpublished = (error: unknown): void =>
    log('WARNING', `${event} was not published: ${messageOf(error)}`, emitter)
  try {
    const { json, keys } = encodePayload(event, payload)
    const published = publish(publicationOf(emitter, event, json, keys, {}, NO_CAUSE))
    if (published instanceof Promise) published.catch(unpublished)
  } catch (error) {
    unpublished(error)
  }
}
