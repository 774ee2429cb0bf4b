// The order of keys, and what waits behind a dead letter of its key.
import { Fifo } from '../../core/collections/fifo.ts'
import type { Consumer, Delivery, DeliveryQueue, HubEvent } from './consumer.ts'

/** A key of one subscriber whose events wait behind a dead letter. */
interface ParkedKey {
  /** The letters that hold it up: one, but after deaths of the process. */
  readonly letters: Set<string>
  /** The event of a letter that is replayed; null: the letter waits. */
  replay: HubEvent | null
  /** Deliveries that wait, in their order. */
  readonly held: Fifo<Delivery>
}

/** A delivery's event, group and key. */
export interface KeyPlace {
  event: string
  group: string
  /** Null: it has no key, and parks none. */
  key: string | null
}

/** The keys that wait behind dead letters in memory, of all subscribers with `onDead: 'park'`. */
export class ParkedKeys {
  readonly #keys = new Map<string, ParkedKey>()
  /** Told when a key goes on, with what waits. */
  readonly #onFreed: (place: KeyPlace, held: Fifo<Delivery>) => void

  constructor(onFreed: (place: KeyPlace, held: Fifo<Delivery>) => void) {
    this.#onFreed = onFreed
  }

  get isEmpty(): boolean {
    return this.#keys.size === 0
  }

  /** Keys that are held up. */
  get size(): number {
    return this.#keys.size
  }

  /** What a letter says of its key. */
  shownOf(place: KeyPlace): { key?: string; waiting?: number } {
    const parked = this.find(place)
    if (place.key === null || parked === undefined) return {}
    return { key: place.key, waiting: parked.held.size }
  }

  find(place: KeyPlace): ParkedKey | undefined {
    return this.#keys.get(idOf(place))
  }

  /** A delivery has become a letter: what follows with its key waits. */
  park(place: KeyPlace, letter: string): void {
    const parked = this.#at(place)
    parked.letters.add(letter)
    parked.replay = null
  }

  /** The letter is replayed: its event goes before those that wait. */
  replaying(place: KeyPlace, letter: string, replay: HubEvent): void {
    const parked = this.#at(place)
    parked.letters.delete(letter)
    parked.replay = replay
  }

  /** The replayed event is handled: what waits goes on, unless another letter holds it up. */
  replayed(place: KeyPlace): void {
    const parked = this.find(place)
    if (parked === undefined) return
    parked.replay = null
    this.#freeIfDone(place, parked)
  }

  /** The letter is deleted, or dropped for a new one. */
  letterGone(place: KeyPlace, letter: string): void {
    const parked = this.find(place)
    if (parked?.letters.delete(letter) === true) this.#freeIfDone(place, parked)
  }

  /** What waits in memory for one subscriber, by key. */
  *heldOf(event: string, group: string): Iterable<Fifo<Delivery>> {
    const prefix = `${event}\0${group}\0`
    for (const [id, { held }] of this.#keys) if (id.startsWith(prefix)) yield held
  }

  get allHeld(): Iterable<Fifo<Delivery>> {
    return [...this.#keys.values()].map(({ held }) => held)
  }

  #freeIfDone(place: KeyPlace, parked: ParkedKey): void {
    if (parked.letters.size > 0 || parked.replay !== null) return
    this.#keys.delete(idOf(place))
    this.#onFreed(place, parked.held)
  }

  #at(place: KeyPlace): ParkedKey {
    let parked = this.find(place)
    if (parked === undefined) {
      parked = { letters: new Set(), replay: null, held: new Fifo() }
      this.#keys.set(idOf(place), parked)
    }
    return parked
  }
}

/** Names have no such character. */
const idOf = ({ event, group, key }: KeyPlace): string => `${event}\0${group}\0${key}`

export interface KeyOrderOptions {
  begin: (delivery: Delivery) => void
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
    if (isReplay(delivery, parked.replay)) {
      this.parked.replayed(placeOf(delivery))
      // What waited for the letter has gone on with whoever has come under its subscriber's name; what came behind its replay has not.
      if (delivery.consumer.isGone) this.#next(delivery.queue, key)
      return
    }
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

  #hold(delivery: Delivery, parked: ParkedKey): void {
    // Nobody would end it: what waited for its subscriber has been dropped.
    if (delivery.consumer.isGone) return this.#options.drop(delivery)
    if (this.#isEnding) return this.#options.drop(delivery)
    parked.held.push(delivery)
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

  /** The same of those that wait for one delivery. */
  takeBehindKey({ queue, event }: Delivery, isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const behind = queue.keyed.get(event.key!)
    const taken: Delivery[] = []
    for (let left = behind?.size ?? 0; left > 0; left--) {
      const next = behind!.shift()!
      if (isWanted(next)) taken.push(next)
      else behind!.push(next)
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

const isReplay = ({ event }: Delivery, replay: HubEvent | null): boolean => replay === event
