// Deliveries in memory that a subscriber has one at a time.
import type { UniqueEvent } from '../../transport/frames/event-frame.ts'
import type { Consumer, Delivery } from './consumer.ts'

/** Of events that are in no store: there the database knows which one is there. */
export class Uniques {
  readonly #there = new Map<string, Delivery>()

  /** The one that is there. Broadcasts, and subscribers that came after the boot, get every event. */
  of({ event, group, broadcast, isTemporary }: Consumer, unique: UniqueEvent): Delivery | undefined {
    const there = broadcast || isTemporary ? undefined : this.#there.get(nameOf(event, group, unique))
    return there !== undefined && isThere(there) ? there : undefined
  }

  accepted(delivery: Delivery): void {
    const name = nameIn(delivery)
    if (name !== null) this.#there.set(name, delivery)
  }

  ended(delivery: Delivery): void {
    const name = nameIn(delivery)
    if (name !== null && this.#there.get(name) === delivery) this.#there.delete(name)
  }
}

/** Until it has ended, or until it begins. */
const isThere = ({ event, state, isBegun }: Delivery): boolean =>
  event.unique!.while === 'running' || (state !== 'sent' && !isBegun)

const nameIn = ({ event: { event, unique, source }, consumer, queue }: Delivery): string | null =>
  unique === null || source !== null || queue.instance !== null ? null : nameOf(event, consumer.group, unique)

/** Names of events and groups have no NUL. */
const nameOf = (event: string, group: string, unique: UniqueEvent): string =>
  `${event}\0${group}\0${unique.while}\0${unique.name}`
