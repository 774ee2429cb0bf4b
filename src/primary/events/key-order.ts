// The order of keys, and the keys blocked by dead letters in memory.
import { Fifo } from '../../core/collections/fifo.ts'
import type { Consumer, Delivery, DeliveryQueue, HubEvent } from './consumer.ts'
import { become } from './delivery-state.ts'

/** A key of one subscriber, blocked by a dead letter. */
interface BlockedKey {
  /** Ids of the dead letters blocking it: more than one only after crashes of the process. */
  readonly deadLetters: Set<string>
  /** Event of the running replay; null: the dead letter waits. */
  replay: HubEvent | null
  /** Waiting deliveries, in their order. */
  readonly held: Fifo<Delivery>
}

/** A delivery's event, group and key. */
export interface KeyPlace {
  event: string
  group: string
  /** Null: no key, so nothing to block. */
  key: string | null
}

/** Keys blocked by dead letters in memory, of all subscribers with `onDead: 'park'`. */
export class BlockedKeys {
  readonly #keys = new Map<string, BlockedKey>()
  /** Called when a key is unblocked, with its waiting deliveries. */
  readonly #onUnblocked: (place: KeyPlace, held: Fifo<Delivery>) => void

  constructor(onUnblocked: (place: KeyPlace, held: Fifo<Delivery>) => void) {
    this.#onUnblocked = onUnblocked
  }

  get isEmpty(): boolean {
    return this.#keys.size === 0
  }

  /** Number of blocked keys. */
  get size(): number {
    return this.#keys.size
  }

  /** Key and backlog for the list of dead letters. */
  shownOf(place: KeyPlace): { key?: string; waiting?: number } {
    const blocked = this.find(place)
    if (place.key === null || blocked === undefined) return {}
    return { key: place.key, waiting: blocked.held.size }
  }

  find(place: KeyPlace): BlockedKey | undefined {
    return this.#keys.get(idOf(place))
  }

  /** Blocks the key of a new dead letter. */
  block(place: KeyPlace, deadLetter: string): void {
    const blocked = this.#at(place)
    blocked.deadLetters.add(deadLetter)
    blocked.replay = null
  }

  /** The dead letter is replayed: its event goes ahead of the waiting ones. */
  replaying(place: KeyPlace, deadLetter: string, replay: HubEvent): void {
    const blocked = this.#at(place)
    blocked.deadLetters.delete(deadLetter)
    blocked.replay = replay
  }

  /** The replayed event is handled: unblocks the key unless another dead letter blocks it. */
  replayed(place: KeyPlace): void {
    const blocked = this.find(place)
    if (blocked === undefined) return
    blocked.replay = null
    this.#unblockIfDone(place, blocked)
  }

  /** The dead letter is deleted, or dropped for a new one. */
  deadLetterGone(place: KeyPlace, deadLetter: string): void {
    const blocked = this.find(place)
    if (blocked?.deadLetters.delete(deadLetter) === true) this.#unblockIfDone(place, blocked)
  }

  /** Number of blocked keys of one subscriber. */
  countOf(event: string, group: string): number {
    return this.isEmpty ? 0 : [...this.heldOf(event, group)].length
  }

  /** Waiting deliveries of one subscriber, by key. */
  *heldOf(event: string, group: string): Iterable<Fifo<Delivery>> {
    const prefix = `${event}\0${group}\0`
    for (const [id, { held }] of this.#keys) if (id.startsWith(prefix)) yield held
  }

  get allHeld(): Iterable<Fifo<Delivery>> {
    return [...this.#keys.values()].map(({ held }) => held)
  }

  #unblockIfDone(place: KeyPlace, blocked: BlockedKey): void {
    if (blocked.deadLetters.size > 0 || blocked.replay !== null) return
    this.#keys.delete(idOf(place))
    this.#onUnblocked(place, blocked.held)
  }

  #at(place: KeyPlace): BlockedKey {
    let blocked = this.find(place)
    if (blocked === undefined) {
      blocked = { deadLetters: new Set(), replay: null, held: new Fifo() }
      this.#keys.set(idOf(place), blocked)
    }
    return blocked
  }
}

/** Names have no NUL. */
const idOf = ({ event, group, key }: KeyPlace): string => `${event}\0${group}\0${key}`

export interface KeyOrderOptions {
  begin: (delivery: Delivery) => void
  /** Ends a delivery that a dead letter in memory would block while this process ends. */
  drop: (delivery: Delivery) => void
  /** Consumer of an unblocked key; undefined if nobody subscribes any more. */
  consumerOf: (place: KeyPlace) => Consumer | undefined
}

/** Deliveries in memory behind dead letters. */
export interface HeldDeliveries {
  deliveries: number
  /** Of their payloads. */
  bytes: number
}

/**
 * Runs the deliveries of one key one after another. A delivery without a key starts at once.
 * A dead letter of a subscriber with `onDead: 'park'` blocks its key until it is replayed or deleted.
 */
export class KeyOrder {
  readonly blocked: BlockedKeys
  readonly held: HeldDeliveries = { deliveries: 0, bytes: 0 }
  readonly #options: KeyOrderOptions
  /** Deliveries ready to start. Empty except while `#advance` runs. */
  readonly #advancing: Delivery[] = []
  #isEnding = false

  constructor(options: KeyOrderOptions) {
    this.#options = options
    this.blocked = new BlockedKeys((place, held) => this.#unblocked(place, held))
  }

  /** Starts a delivery, after earlier ones of its key. */
  admit(delivery: Delivery): void {
    const { key } = delivery.event
    if (key !== null) {
      const { keyed } = delivery.queue
      const blocked = this.#blockOf(delivery)
      if (blocked !== undefined && !isReplay(delivery, blocked.replay)) return this.#wait(delivery, blocked)
      const behind = keyed.get(key)
      if (behind !== undefined && blocked === undefined) {
        become(delivery, 'behind')
        behind.push(delivery)
        return
      }
      if (behind === undefined) keyed.set(key, new Fifo())
    }
    this.#options.begin(delivery)
  }

  /** Starts the next delivery of the key, unless a dead letter blocks it. */
  finished(delivery: Delivery): void {
    const { key } = delivery.event
    if (key === null) return
    const blocked = this.#blockOf(delivery)
    if (blocked === undefined) return this.#next(delivery.queue, key)
    if (isReplay(delivery, blocked.replay)) {
      this.blocked.replayed(placeOf(delivery))
      // Deliveries blocked by the dead letter went to the new subscriber of that name; the ones behind its replay did not.
      if (delivery.consumer.isGone) this.#next(delivery.queue, key)
      return
    }
    // The delivery is a dead letter now: the ones behind it are blocked.
    const { keyed } = delivery.queue
    const behind = keyed.get(key)
    keyed.delete(key)
    for (let next = behind?.shift(); next !== undefined; next = behind!.shift()) this.#wait(next, blocked)
  }

  #blockOf(delivery: Delivery): BlockedKey | undefined {
    if (this.blocked.isEmpty || delivery.queue.instance !== null) return undefined
    return this.blocked.find(placeOf(delivery))
  }

  #wait(delivery: Delivery, blocked: BlockedKey): void {
    // Nobody would end it: the backlog of its subscriber has been dropped.
    if (delivery.consumer.isGone) return this.#options.drop(delivery)
    if (this.#isEnding) return this.#options.drop(delivery)
    become(delivery, 'behind')
    blocked.held.push(delivery)
    this.#count(delivery, 1)
  }

  #unblocked(place: KeyPlace, held: Fifo<Delivery>): void {
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

  /** Takes out the deliveries blocked by dead letters. @param consumer of it alone */
  takeHeld(consumer?: Consumer): Delivery[] {
    const { blocked } = this
    const all = consumer === undefined ? blocked.allHeld : blocked.heldOf(consumer.event, consumer.group)
    return [...all].flatMap((held) => this.#taken(held))
  }

  /** Takes out matching deliveries that wait for others of their keys. */
  takeBehind({ keyed }: DeliveryQueue, isWanted: (delivery: Delivery) => boolean): Delivery[] {
    return [...keyed.values()].flatMap((behind) => behind.takeIf(isWanted))
  }

  /** Takes out matching deliveries that wait for dead letters in memory. */
  takeBlocked(isWanted: (delivery: Delivery) => boolean): Delivery[] {
    const taken = [...this.blocked.allHeld].flatMap((held) => held.takeIf(isWanted))
    for (const delivery of taken) this.#count(delivery, -1)
    return taken
  }

  /** Takes out matching deliveries that wait for this one. */
  takeBehindKey({ queue, event }: Delivery, isWanted: (delivery: Delivery) => boolean): Delivery[] {
    return queue.keyed.get(event.key!)?.takeIf(isWanted) ?? []
  }

  #taken(held: Fifo<Delivery>): Delivery[] {
    const taken: Delivery[] = []
    for (let next = held.shift(); next !== undefined; next = held.shift()) {
      this.#count(next, -1)
      taken.push(next)
    }
    return taken
  }

  /** Ends all waiting in memory behind dead letters, for the end of the process. @returns the number of dropped deliveries */
  end(): number {
    this.#isEnding = true
    const held = this.takeHeld()
    for (const delivery of held) this.#options.drop(delivery)
    return held.length
  }

  /** A loop, not recursion: a queue of expired events of one key would overflow the stack. */
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
