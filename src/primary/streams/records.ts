import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'

/** Events of other replicas whose record is not made twice, though several groups here get them. */
const RECEIVED_KEPT = 1000

/** What the trace of this process knows of events that pass its hub by: those that it publishes, and those that it receives. */
export class StreamRecords {
  readonly #hub: Hub
  readonly #received = new Set<string>()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  published(frame: EventFrame, origin: SubscriberThread | null): void {
    this.#hub.record(frame, origin)
  }

  /** One that several groups here receive is noted once. */
  received(frame: EventFrame, origin: SubscriberThread | null = null): void {
    if (this.#received.has(frame.id)) return
    this.#received.add(frame.id)
    if (this.#received.size > RECEIVED_KEPT) this.#received.delete(this.#received.values().next().value!)
    this.#hub.record(frame, origin)
  }
}
