import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import { RecentIds } from './recent-ids.ts'

/** Records the events that do not pass the hub of this process: those that it publishes, and those that it receives. */
export class StreamRecords {
  readonly #hub: Hub
  readonly #received = new RecentIds()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  published(frame: EventFrame, origin: SubscriberThread | null): void {
    this.#hub.record(frame, origin)
  }

  /** An event that several groups here receive is recorded once. */
  received(frame: EventFrame, origin: SubscriberThread | null = null): void {
    if (this.#received.add(frame.id)) this.#hub.record(frame, origin)
  }
}
