import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'
import { type EventLog, LogPublisher } from '../../runtime/event-log/event-log.ts'
import { asBytes, type EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import type { EventDriver } from '../events/event-driver.ts'
import type { Hub } from '../events/hub.ts'
import type { DurableLog } from './durable-log.ts'
import type { StoredLetters } from './stored-letters.ts'

/** Events of the runtime tell what happens in this process: none of them outlives it. */
const RUNTIME_EVENT = 'runtime.'

/** Keeps the events in the database: they are stored first, and delivered by the hub. Requests for a reply live as long as the one who waits. */
export class DatabaseDriver implements EventDriver {
  readonly #hub: Hub
  readonly #publisher: LogPublisher
  readonly #origins = new WeakMap<EventFrame, SubscriberThread | null>()
  readonly #letters: StoredLetters

  constructor(parts: { hub: Hub; log: EventLog; durable: DurableLog; letters: StoredLetters }) {
    this.#hub = parts.hub
    this.#publisher = new LogPublisher(parts.log, (event) =>
      parts.durable.take(asBytes(event), this.#origins.get(event) ?? null),
    )
    this.#letters = parts.letters
  }

  async publish(event: EventFrame, origin: SubscriberThread | null): Promise<void> {
    if (event.event.startsWith(RUNTIME_EVENT)) return this.#hub.publish(asBytes(event), origin)
    this.#origins.set(event, origin)
    await this.#publisher.publish(event)
  }

  request(event: EventFrame, origin: SubscriberThread | null, timeoutMs: number): Promise<string> {
    return this.#hub.request(asBytes(event), origin, timeoutMs)
  }

  deadLetters(page: DeadLetterPage): Promise<DeadLetter[]> {
    return this.#letters.list(page)
  }

  replayDeadLetter(id: string): Promise<boolean> {
    return this.#letters.replay(id)
  }

  editDeadLetter(id: string, json: string, keys: string): Promise<boolean> {
    return this.#letters.edit(id, json, keys)
  }

  deleteDeadLetter(id: string): Promise<boolean> {
    return this.#letters.delete(id)
  }
}
