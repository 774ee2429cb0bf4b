// Records of stored events for the trace, each once: by the doorbell, or when the row of a dead thread or of another process is read.
import { RecentIds } from '../../core/collections/recent-ids.ts'
import { MEMBER_THREADS } from '../../runtime/event-store/server-tables.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import type { SubscriberThread } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { StoredDelivery } from './store.ts'

/** Maximum number of events kept for the trace until the subscribers are known. */
const WAITING_MAX = 10_000

export interface StoredRecordsParts {
  hub: Hub
  /** Number of this member; 0 on a file. */
  member: () => number
  /** False when the thread has ended. */
  isAlive: (threadId: number) => boolean
}

export class StoredRecords {
  readonly #parts: StoredRecordsParts
  /** Events published before the subscribers were known; null: they are. */
  #waiting: { event: EventFrame; origin: SubscriberThread | null; isRelayed: boolean }[] | null = []
  /** Last recorded event of each thread. Events of one thread are in the order of their ids. */
  readonly #last = new Map<number, string>()
  /** Events of other processes: an event for several groups is recorded once. */
  readonly #received = new RecentIds()

  constructor(parts: StoredRecordsParts) {
    this.#parts = parts
  }

  /** @param isRelayed true if its driver records it when the broker has it */
  published(event: EventFrame, origin: SubscriberThread | null, isRelayed: boolean): void {
    if (this.#waiting !== null) {
      if (this.#waiting.length < WAITING_MAX) this.#waiting.push({ event, origin, isRelayed })
      return
    }
    if (origin !== null) this.#last.set(origin.threadId, event.id)
    if (!isRelayed) this.#parts.hub.record(event, origin)
  }

  /** All subscribers are known. */
  adopt(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = null
    for (const { event, origin, isRelayed } of waiting) this.published(event, origin, isRelayed)
  }

  /** Records an event of another process, and one whose lane died before it could send the doorbell. */
  read({ thread: number, event }: StoredDelivery, isRelayed: boolean): void {
    const { hub, member, isAlive } = this.#parts
    if (Math.floor(number / MEMBER_THREADS) !== member()) {
      if (!isRelayed && this.#received.add(event.id)) hub.record(event, null, false)
      return
    }
    const thread = number % MEMBER_THREADS
    if ((this.#last.get(thread) ?? '') >= event.id || isAlive(thread)) return
    this.#last.set(thread, event.id)
    if (!isRelayed) hub.record(event, null)
  }
}
