import { Fifo } from '../../core/collections/fifo.ts'
import type { Consumer, Delivery, DeliveryQueue } from './consumer.ts'
import { type KeyPlace, type ParkedKey, ParkedKeys } from './parked-keys.ts'

export interface KeyOrderOptions {
  begin: (delivery: Delivery) => void
  /** A delivery waits in the durable log from now on, behind a dead letter: it leaves the hub. */
  leave: (delivery: Delivery) => void
  /** Ends a delivery that would wait in memory behind a dead letter while this process ends. */
  drop: (delivery: Delivery) => void
  /** The consumer of a key that goes on; undefined when nobody subscribes any more. */
  consumerOf: (place: KeyPlace) => Consumer | undefined
}

/** What waits in memory behind dead letters. */
export interface HeldDeliveries {
  deliveries: number
  /** Of their payloads. */
  bytes: number
}

/**
 * Lets deliveries of one key begin one after another. A delivery without a key begins at once.
 * Behind a dead letter of a subscriber with `onDead: 'park'` they wait until the letter is replayed or deleted.
 */
export class KeyOrder {
  readonly parked: ParkedKeys
  readonly held: HeldDeliveries = { deliveries: 0, bytes: 0 }
  readonly #options: KeyOrderOptions
  /** Deliveries whose turn has come. Empty except while `#advance` runs. */
  readonly #advancing: Delivery[] = []
  #isEnding = false

  constructor(options: KeyOrderOptions) {
    this.#options = options
    this.parked = new ParkedKeys((place, held) => this.#freed(place, held))
  }

  /** Begins a delivery, after those of the same key if there are any. */
  admit(delivery: Delivery): void {
    const { key } = delivery.event
    if (key !== null) {
      const { keyed } = delivery.queue
      const parked = this.#parkedOf(delivery)
      if (parked !== undefined && !isReplay(delivery, parked.replay)) return this.#hold(delivery, parked)
      const behind = keyed.get(key)
      if (behind !== undefined && parked === undefined) {
        behind.push(delivery)
        return
      }
      if (behind === undefined) keyed.set(key, new Fifo())
    }
    this.#options.begin(delivery)
  }

  /** Begins the next delivery of the same key, if there is one. Behind a dead letter they wait. */
  finished(delivery: Delivery): void {
    const { key } = delivery.event
    if (key === null) return
    const parked = this.#parkedOf(delivery)
    if (parked === undefined) return this.#next(delivery.queue, key)
    if (isReplay(delivery, parked.replay)) return this.parked.replayed(placeOf(delivery))
    // It has become a letter: those behind it wait.
    const { keyed } = delivery.queue
    const behind = keyed.get(key)
    keyed.delete(key)
    for (let next = behind?.shift(); next !== undefined; next = behind!.shift()) this.#hold(next, parked)
  }

  #parkedOf(delivery: Delivery): ParkedKey | undefined {
    if (this.parked.isEmpty || delivery.queue.instance !== null) return undefined
    return this.parked.find(placeOf(delivery))
  }

  #hold(delivery: Delivery, { positions, held }: ParkedKey): void {
    // Nobody would end it: what waited for its subscriber has been dropped.
    if (delivery.consumer.isGone) return this.#options.drop(delivery)
    if (delivery.source?.park?.(positions) === true) return this.#options.leave(delivery)
    if (this.#isEnding) return this.#options.drop(delivery)
    held.push(delivery)
    this.#count(delivery, 1)
  }

  #freed(place: KeyPlace, held: Fifo<Delivery>): void {
    const queue = this.#options.consumerOf(place)?.queue
    if (queue === undefined) return
    const key = place.key!
    const behind = queue.keyed.get(key) ?? new Fifo()
    queue.keyed.set(key, behind)
    for (const delivery of this.#taken(held)) behind.push(delivery)
    this.#next(queue, key)
  }

  #next({ keyed }: DeliveryQueue, key: string): void {
    const next = keyed.get(key)?.shift()
    if (next === undefined) keyed.delete(key)
    else this.#advance(next)
  }

  #count({ event }: Delivery, sign: 1 | -1): void {
    this.held.deliveries += sign
    this.held.bytes += sign * event.payload.length
  }

  /** Takes out what waits in memory behind dead letters. @param consumer of it alone */
  takeHeld(consumer?: Consumer): Delivery[] {
    const { parked } = this
    const all = consumer === undefined ? parked.allHeld : parked.heldOf(consumer.event, consumer.group)
    return [...all].flatMap((held) => this.#taken(held))
  }

  /** Takes out the deliveries for which this holds, of those that wait for others of their keys. */
  takeBehind({ keyed }: DeliveryQueue, isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken: Delivery[] = []
    for (const behind of keyed.values()) {
      for (let left = behind.size; left > 0; left--) {
        const next = behind.shift()!
        if (isWanted(next)) taken.push(next)
        else behind.push(next)
      }
    }
    return taken
  }

  #taken(held: Fifo<Delivery>): Delivery[] {
    const taken: Delivery[] = []
    for (let next = held.shift(); next !== undefined; next = held.shift()) {
      this.#count(next, -1)
      taken.push(next)
    }
    return taken
  }

  /** This process ends: nothing waits in memory behind dead letters any more. @returns how many deliveries were dropped */
  end(): number {
    this.#isEnding = true
    const held = this.takeHeld()
    for (const delivery of held) this.#options.drop(delivery)
    return held.length
  }

  /** In a loop and not by recursion: a queue of expired events of one key would overflow the stack. */
  #advance(next: Delivery): void {
    this.#advancing.push(next)
    if (this.#advancing.length > 1) return
    try {
      for (let n = 0; n < this.#advancing.length; n++) this.#options.begin(this.#advancing[n]!)
    } finally {
      this.#advancing.length = 0
    }
  }
}

const placeOf = ({ event: { event, key }, consumer: { group } }: Delivery): KeyPlace => ({ event, group, key })

const isReplay = ({ event }: Delivery, replay: Delivery['event'] | number | null): boolean =>
  replay !== null && (replay === event || (event.seq > 0 && replay === event.seq))
