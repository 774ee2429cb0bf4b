// Dead letters in memory: kept, filtered, shown in pages, replayed.
import type { DeadLetter, DeadLetterPage } from '../../contracts/event-bus.ts'
import type { BlackBox } from '../../contracts/registry.ts'
import type { Chance, Clock } from '../../core/schedule/clock.ts'
import { splitKeys } from '../../runtime/events/publication.ts'

/** True when the letter is among those that are wanted; its age in the pages aside. */
export function isWanted(letter: DeadLetter, wanted: DeadLetterPage): boolean {
  const { event, subscriber, error, since, until, parked, ids } = wanted
  if (parked !== undefined && (letter.parked === true) !== parked) return false
  if (event !== undefined && letter.event !== event) return false
  if (subscriber !== undefined && letter.subscriber !== subscriber) return false
  if (error !== undefined && !letter.error.includes(error)) return false
  // ISO 8601 of one form sorts as the times do.
  if (since !== undefined && letter.timestamp < isoOf(since)) return false
  if (until !== undefined && letter.timestamp >= isoOf(until)) return false
  return ids === undefined || ids.includes(letter.id)
}

const isoOf = (time: Date | string): string => (typeof time === 'string' ? time : time.toISOString())

/** Letters of a page at most, and where nobody asks for less. */
const DEAD_LETTERS_PAGE_MAX = 1000
/** What a page takes as JSON at most, but for its newest letter. */
export const DEAD_LETTERS_PAGE_BYTES = 4 * 1024 * 1024

/** Collects one page of the dead letters, from the newest to older ones. */
export class LetterPage {
  readonly #limit: number
  readonly #newestFirst: DeadLetter[] = []
  #bytes = 0

  constructor({ limit = DEAD_LETTERS_PAGE_MAX }: DeadLetterPage) {
    this.#limit = limit
  }

  get isFull(): boolean {
    return this.#newestFirst.length >= this.#limit || this.#bytes >= DEAD_LETTERS_PAGE_BYTES
  }

  /** False when the letter belongs to the next page. */
  add(letter: DeadLetter): boolean {
    const bytes = Buffer.byteLength(JSON.stringify(letter))
    const isTooLarge = this.#bytes + bytes > DEAD_LETTERS_PAGE_BYTES && this.#newestFirst.length > 0
    if (this.isFull || isTooLarge) return false
    this.#newestFirst.push(letter)
    this.#bytes += bytes
    return true
  }

  oldestFirst(): DeadLetter[] {
    return [...this.#newestFirst].reverse()
  }
}

/** Counts the dead letters that were dropped for new ones, and tells of the first. */
export class DroppedLetters {
  readonly #tell: (message: string) => void
  #count = 0

  constructor(tell: (message: string) => void) {
    this.#tell = tell
  }

  /** Since the start of the process. */
  get count(): number {
    return this.#count
  }

  add(letters: number): void {
    if (this.#count === 0 && letters > 0) {
      this.#tell(
        'The dead-letter store is full: the oldest letters are dropped for new ones (EVENT_BUS_MAX_DEAD_BYTES). They are counted from now on, and this is not told again',
      )
    }
    this.#count += letters
  }
}

/** Replayed letters that are kept; then the oldest are forgotten. */
const REPLAYS_MAX = 1000

/** What has become of the letters of the hub's memory that were replayed. */
export class Replays {
  readonly #clock: Clock
  readonly #letters: DeadLetter[] = []
  /** Those whose events are under way. */
  readonly #running = new Map<object, DeadLetter>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isEmpty(): boolean {
    return this.#running.size === 0
  }

  /** @param event the object that is delivered */
  begun(letter: DeadLetter, event: object): void {
    const replayed: DeadLetter = {
      ...letter,
      replay: { at: new Date(this.#clock.nowMs()).toISOString(), outcome: 'running' },
    }
    this.#running.set(event, replayed)
    if (this.#letters.push(replayed) > REPLAYS_MAX) this.#letters.shift()
  }

  /** @param error why it has failed again; null when it was handled. @param letter id of the new letter, if there is one */
  ended(event: object, error: string | null, letter: string | null): void {
    const replayed = this.#running.get(event)
    if (replayed === undefined) return
    this.#running.delete(event)
    const { at } = replayed.replay!
    replayed.replay =
      error === null
        ? { at, outcome: 'done' }
        : { at, outcome: 'failed', error, ...(letter === null ? {} : { letter }) }
  }

  /** Oldest first. */
  list(wanted: DeadLetterPage): DeadLetter[] {
    const page = new LetterPage(wanted)
    for (const letter of this.#letters.toSorted((a, b) => (a.id < b.id ? 1 : -1))) {
      if (wanted.before !== undefined && letter.id >= wanted.before) continue
      if (isWanted(letter, wanted) && !page.add(letter)) break
    }
    return page.oldestFirst()
  }
}

/** Dead letters that are kept at most; then the oldest one is dropped. */
export const DEAD_LETTERS_MAX = 1000
/** What they take together, where nothing else is set: the default of EVENT_BUS_MAX_DEAD_BYTES. */
export const DEAD_LETTERS_MAX_BYTES = 67_108_864
/** What a letter takes beside its texts, bytes: a guess. */
const LETTER_BYTES = 1024

/** A delivery that failed for good, with all that its replay needs. */
export interface StoredLetter<Event> {
  readonly id: string
  readonly event: Event
  /** The consumer that it is replayed to. */
  readonly group: string
  readonly subscriber: string
  readonly error: string
  readonly attempts: number
  /** The report of the last death, when threads died of the delivery, without its steps. */
  readonly blackBox: BlackBox | null
  /** True when what follows with its key waits for it. */
  readonly parks: boolean
  /** The payload before it was edited, and its keys. */
  readonly original?: { payload: string; payloadKeys: string }
  readonly atMs: number
  readonly bytes: number
}

interface LetterEvent {
  readonly id: string
  readonly event: string
  readonly payload: string
  readonly payloadKeys: string
  readonly requestId: string | null
}

/** The dead-letter store of the in-process bus. */
export class DeadLetters<Event extends LetterEvent> {
  readonly #letters = new Map<string, StoredLetter<Event>>()
  readonly #clock: Clock
  readonly #chance: Chance
  readonly #maxBytes: number
  #bytes = 0

  constructor(clock: Clock, chance: Chance, maxBytes = DEAD_LETTERS_MAX_BYTES) {
    this.#clock = clock
    this.#chance = chance
    this.#maxBytes = maxBytes
  }

  /** @returns its id, and the old letters that were dropped for it */
  add(failed: Omit<StoredLetter<Event>, 'id' | 'atMs' | 'bytes'>): { id: string; dropped: StoredLetter<Event>[] } {
    const id = `dl_${this.#chance.id()}`
    const { event, error } = failed
    const blackBox = failed.blackBox === null ? null : { ...failed.blackBox, steps: [] }
    const boxBytes = blackBox === null ? 0 : JSON.stringify(blackBox).length
    const bytes = LETTER_BYTES + event.payload.length + event.payloadKeys.length + 2 * error.length + boxBytes
    this.#letters.set(id, { ...failed, blackBox, id, atMs: this.#clock.nowMs(), bytes })
    this.#bytes += bytes
    const dropped: StoredLetter<Event>[] = []
    // The new one stays, whatever its size: an event has a limit of its own.
    while (this.#letters.size > DEAD_LETTERS_MAX || (this.#bytes > this.#maxBytes && this.#letters.size > 1)) {
      const oldest = this.#letters.values().next().value!
      this.delete(oldest.id)
      dropped.push(oldest)
    }
    return { id, dropped }
  }

  /** Oldest first, without payload values. */
  list(wanted: DeadLetterPage = {}): DeadLetter[] {
    const page = new LetterPage(wanted)
    const newestFirst = [...this.#letters.values()].reverse()
    for (const letter of newestFirst) {
      // Ids grow with time.
      if (wanted.before !== undefined && letter.id >= wanted.before) continue
      const each = listed(letter)
      if (isWanted(each, wanted) && !page.add(each)) break
    }
    return page.oldestFirst()
  }

  get(id: string): StoredLetter<Event> | undefined {
    return this.#letters.get(id)
  }

  /** @param payload a string of bytes, as the hub keeps it */
  edit(id: string, payload: string, payloadKeys: string): boolean {
    const letter = this.#letters.get(id)
    if (letter === undefined) return false
    const { event, original } = letter
    const kept = original ?? { payload: event.payload, payloadKeys: event.payloadKeys }
    const added = payload.length - (original === undefined ? 0 : event.payload.length)
    const edited = { ...event, payload, payloadKeys }
    // At its place: the oldest are dropped first.
    this.#letters.set(id, { ...letter, event: edited, original: kept, bytes: letter.bytes + added })
    this.#bytes += added
    return true
  }

  delete(id: string): boolean {
    this.#bytes -= this.#letters.get(id)?.bytes ?? 0
    return this.#letters.delete(id)
  }
}

export function listed(letter: StoredLetter<LetterEvent>): DeadLetter {
  return {
    id: letter.id,
    event: letter.event.event,
    event_id: letter.event.id,
    subscriber: letter.subscriber,
    error: letter.error,
    attempts: letter.attempts,
    ...(letter.blackBox === null ? {} : { black_box: letter.blackBox }),
    ...(letter.parks ? { parked: true } : {}),
    ...(letter.original === undefined ? {} : { original_keys: splitKeys(letter.original.payloadKeys) }),
    payload_keys: splitKeys(letter.event.payloadKeys),
    timestamp: new Date(letter.atMs).toISOString(),
    request_id: letter.event.requestId,
  }
}
