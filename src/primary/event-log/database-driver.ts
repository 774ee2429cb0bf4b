import { type EventLog, LogPublisher } from '../../runtime/event-log/event-log.ts'
import { asBytes, type EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import type { DeadLetters } from '../events/dead-letters.ts'
import type { EventDriver } from '../events/event-driver.ts'
import type { Hub } from '../events/hub.ts'
import type { DurableLog } from './durable-log.ts'

/** Events of the runtime tell what happens in this process: none of them outlives it. */
const RUNTIME_EVENT = 'runtime.'

/** Keeps the events in the database: they are stored first, and delivered by the hub. Requests for a reply live as long as the one who waits. */
export class DatabaseDriver implements EventDriver {
  readonly deadLetters: DeadLetters
  readonly #hub: Hub
  readonly #publisher: LogPublisher
  readonly #origins = new WeakMap<EventFrame, SubscriberThread | null>()

  constructor(parts: { hub: Hub; log: EventLog; durable: DurableLog; deadLetters: DeadLetters }) {
    this.#hub = parts.hub
    this.#publisher = new LogPublisher(parts.log, (event) =>
      parts.durable.feed.take(asBytes(event), this.#origins.get(event) ?? null),
    )
    this.deadLetters = parts.deadLetters
  }

  async publish(event: EventFrame, origin: SubscriberThread | null): Promise<void> {
    if (event.event.startsWith(RUNTIME_EVENT)) return this.#hub.publish(asBytes(event), origin)
    this.#origins.set(event, origin)
    await this.#publisher.publish(event)
  }

  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    return this.#hub.request(asBytes(event), origin, timeoutMs)
  }
}
