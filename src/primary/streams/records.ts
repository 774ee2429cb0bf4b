import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'

/** So many events of other replicas are remembered: each is recorded once, though several groups here may get it. */
const RECEIVED_KEPT = 1000

/** Records the events that do not pass the hub of this process: those that it publishes, and those that it receives. */
export class StreamRecords {
  readonly #hub: Hub
  readonly #received = new Set<string>()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  published(frame: EventFrame, origin: SubscriberThread | null): void {
    this.#hub.record(frame, origin)
  }

  /** An event that several groups here receive is recorded once. */
  received(frame: EventFrame, origin: SubscriberThread | null = null): void {
    if (this.#received.has(frame.id)) return
    this.#received.add(frame.id)
    if (this.#received.size > RECEIVED_KEPT) this.#received.delete(this.#received.values().next().value!)
    this.#hub.record(frame, origin)
  }
}
