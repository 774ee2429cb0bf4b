import { Fifo } from '../../core/collections/fifo.ts'
import type { Delivery, HubEvent } from './consumer.ts'

/** A key of one subscriber whose events wait behind a dead letter. */
export interface ParkedKey {
  /** The letters that hold it up: one, but after deaths of the process. */
  readonly letters: Set<string>
  /** The event of a letter that is replayed, or its position in the durable log; null: the letter waits. */
  replay: HubEvent | number | null
  /** Deliveries that wait in memory, in their order. */
  readonly held: Fifo<Delivery>
  /** Positions in the durable log of the events that wait there, in their order. */
  readonly positions: Set<number>
}

/** A delivery's event, group and key. */
export interface KeyPlace {
  event: string
  group: string
  /** Null: it has no key, and parks none. */
  key: string | null
}

/** The keys that wait behind dead letters, of all subscribers with `onDead: 'park'`. */
export class ParkedKeys {
  readonly #keys = new Map<string, ParkedKey>()
  /** Told when a key goes on, with what waits in memory. */
  readonly #onFreed: (place: KeyPlace, held: Fifo<Delivery>) => void
  /** Told before, of the positions of those that wait in the durable log. */
  onPositions: ((positions: ReadonlySet<number>) => void) | null = null

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
    return { key: place.key, waiting: parked.held.size + parked.positions.size }
  }

  find(place: KeyPlace): ParkedKey | undefined {
    return this.#keys.get(idOf(place))
  }

  /** All letters that something waits for. */
  letters(): { id: string; place: KeyPlace }[] {
    return [...this.#keys].flatMap(([key, { letters }]) => {
      const place = placeIn(key)
      return [...letters].map((id) => ({ id, place }))
    })
  }

  /** A delivery has become a letter: what follows with its key waits. */
  park(place: KeyPlace, letter: string): void {
    const parked = this.#at(place)
    parked.letters.add(letter)
    parked.replay = null
  }

  /** There is a letter: what follows with its key waits. */
  hold(place: KeyPlace, letter: string): void {
    this.#at(place).letters.add(letter)
  }

  /** The letter is replayed: its event goes before those that wait. */
  replaying(place: KeyPlace, letter: string, replay: HubEvent | number): void {
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

  /** These do not wait here any more. */
  dropPositions(dropped: readonly number[]): void {
    for (const { positions } of this.#keys.values()) for (const position of dropped) positions.delete(position)
  }

  #freeIfDone(place: KeyPlace, parked: ParkedKey): void {
    if (parked.letters.size > 0 || parked.replay !== null) return
    this.#keys.delete(idOf(place))
    // What waits in the log first: those that come from now on wait behind it.
    if (parked.positions.size > 0) this.onPositions?.(parked.positions)
    this.#onFreed(place, parked.held)
  }

  #at(place: KeyPlace): ParkedKey {
    let parked = this.find(place)
    if (parked === undefined) {
      parked = { letters: new Set(), replay: null, held: new Fifo(), positions: new Set() }
      this.#keys.set(idOf(place), parked)
    }
    return parked
  }
}

/** Names have no such character. */
const idOf = ({ event, group, key }: KeyPlace): string => `${event}\0${group}\0${key}`

function placeIn(id: string): KeyPlace {
  const [event, group, ...key] = id.split('\0')
  return { event: event!, group: group!, key: key.join('\0') }
}
