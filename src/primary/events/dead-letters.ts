// Dead letters in memory: kept, filtered, shown in pages, replayed.

import type { Awaitable } from '../../contracts/common.ts'
import type { DeadLetter, DeadLetterPage, LetterReplay } from '../../contracts/event-bus.ts'
import type { Chance, Clock } from '../../core/schedule/clock.ts'
import { splitKeys } from '../../runtime/events/publication.ts'
import { type FailedDelivery, type HubEvent, hubEventOf } from './consumer.ts'
import type { KeyPlace, ParkedKeys } from './key-order.ts'
import type { RecordLog } from './records.ts'

/** The dead letters of a process, in memory or in a store. */
export interface DeadLetters {
  /** Oldest first, without payload values. */
  list(wanted: DeadLetterPage): Awaitable<DeadLetter[]>
  /** Publishes it again for its subscriber alone. False if there is no such dead letter, or no subscriber. */
  replay(id: string): Awaitable<boolean>
  /** Payload of its replay, as JSON; null if there is no such dead letter. */
  payload(id: string): Awaitable<string | null>
  /** @param json the new payload. @param keys its keys. */
  edit(id: string, json: string, keys: string): Awaitable<boolean>
  /** Deletes it and unblocks its key. */
  delete(id: string): Awaitable<boolean>
}

/** True when the dead letter matches the filter. The cursor `before` is not checked. */
function isWanted(letter: DeadLetter, wanted: DeadLetterPage): boolean {
  const { event, subscriber, error, since, until, parked, ids } = wanted
  if (parked !== undefined && (letter.parked === true) !== parked) return false
  if (event !== undefined && letter.event !== event) return false
  if (subscriber !== undefined && letter.subscriber !== subscriber) return false
  if (error !== undefined && !letter.error.includes(error)) return false
  // ISO 8601 texts of one form sort by time.
  if (since !== undefined && letter.timestamp < isoOf(since)) return false
  if (until !== undefined && letter.timestamp >= isoOf(until)) return false
  return ids === undefined || ids.includes(letter.id)
}

const isoOf = (time: Date | string): string => (typeof time === 'string' ? time : time.toISOString())

/** Maximum and default number of dead letters of a page. */
const DEAD_LETTERS_PAGE_MAX = 1000
/** Maximum size of a page as JSON, except for its newest dead letter. */
export const DEAD_LETTERS_PAGE_BYTES = 4 * 1024 * 1024

/** Collects one page of the dead letters, from the newest to older ones. */
export class LetterPage {
  readonly #wanted: DeadLetterPage
  readonly #limit: number
  readonly #newestFirst: DeadLetter[] = []
  #bytes = 0

  constructor(wanted: DeadLetterPage) {
    this.#wanted = wanted
    this.#limit = wanted.limit ?? DEAD_LETTERS_PAGE_MAX
  }

  /** Adds the matching ones. @returns true when the page is full */
  add(newestFirst: Iterable<DeadLetter>): boolean {
    for (const letter of newestFirst) {
      if (!isWanted(letter, this.#wanted)) continue
      const bytes = Buffer.byteLength(JSON.stringify(letter))
      const isTooLarge = this.#bytes + bytes > DEAD_LETTERS_PAGE_BYTES && this.#newestFirst.length > 0
      if (this.#isFull || isTooLarge) return true
      this.#newestFirst.push(letter)
      this.#bytes += bytes
    }
    return this.#isFull
  }

  get #isFull(): boolean {
    return this.#newestFirst.length >= this.#limit || this.#bytes >= DEAD_LETTERS_PAGE_BYTES
  }

  oldestFirst(): DeadLetter[] {
    return [...this.#newestFirst].reverse()
  }
}

/** Counts the dead letters dropped for new ones, and logs the first. */
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

/** Maximum number of replayed dead letters; above it the oldest are forgotten. */
const REPLAYS_MAX = 1000
/** Maximum number of dead letters; above it the oldest is dropped. */
const DEAD_LETTERS_MAX = 1000
/** Default of EVENT_BUS_MAX_DEAD_BYTES. */
export const DEAD_LETTERS_MAX_BYTES = 67_108_864
/** Estimated size of a dead letter beside its texts, bytes. */
const LETTER_BYTES = 1024

/** A failed delivery with everything its replay needs. */
interface MemoryLetter extends Omit<FailedDelivery, 'trace'> {
  readonly id: string
  /** The payload before the edit, and its keys. */
  readonly original?: { payload: string; payloadKeys: string }
  /** Outcome of its replay. */
  readonly replay?: LetterReplay
  readonly atMs: number
  readonly bytes: number
}

interface MemoryDeadLettersParts {
  clock: Clock
  chance: Chance
  log: RecordLog
  /** EVENT_BUS_MAX_DEAD_BYTES; its default when left out. */
  maxDeadBytes?: number
  /** Keys blocked by dead letters. */
  parked: ParkedKeys
  hasConsumer: (event: string, group: string) => boolean
  /** Delivers an event to one of its groups alone. */
  deliver: (event: HubEvent, group: string) => void
}

/** The dead letters of events in memory. */
export class MemoryDeadLetters implements DeadLetters {
  /** Dead letters dropped for new ones, here or in the store of the streams. */
  readonly dropped: DroppedLetters
  readonly #parts: MemoryDeadLettersParts
  readonly #letters = new Map<string, MemoryLetter>()
  /** Replayed dead letters, without their payloads. */
  readonly #replayed = new Map<string, MemoryLetter>()
  /** Ids of the dead letters with a running replay, by event. */
  readonly #running = new Map<HubEvent, string>()
  #bytes = 0

  constructor(parts: MemoryDeadLettersParts) {
    this.#parts = parts
    this.dropped = new DroppedLetters((message) => parts.log('WARNING', message))
  }

  /** Adds a dead letter. With `parks` it blocks its key. Keys blocked by the dropped ones are unblocked. */
  add({ trace: _, ...failed }: FailedDelivery): void {
    const { chance, clock, parked } = this.#parts
    const id = `dl_${chance.id()}`
    const { event, error } = failed
    const blackBox = failed.blackBox === null ? null : { ...failed.blackBox, steps: [] }
    const boxBytes = blackBox === null ? 0 : JSON.stringify(blackBox).length
    const bytes = LETTER_BYTES + event.payload.length + event.payloadKeys.length + 2 * error.length + boxBytes
    this.#letters.set(id, { ...failed, blackBox, id, atMs: clock.nowMs(), bytes })
    this.#bytes += bytes
    const dropped = this.#dropOldest()
    this.dropped.add(dropped.length)
    if (failed.parks) parked.park(placeOf(failed), id)
    this.replayEnded(event, error, id)
    for (const old of dropped) if (old.parks) parked.letterGone(placeOf(old), old.id)
  }

  /** The new one stays, whatever its size: events have a size limit of their own. */
  #dropOldest(): MemoryLetter[] {
    const maxBytes = this.#parts.maxDeadBytes ?? DEAD_LETTERS_MAX_BYTES
    const dropped: MemoryLetter[] = []
    while (this.#letters.size > DEAD_LETTERS_MAX || (this.#bytes > maxBytes && this.#letters.size > 1))
      dropped.push(this.#take(this.#letters.values().next().value!))
    return dropped
  }

  #take(letter: MemoryLetter): MemoryLetter {
    this.#letters.delete(letter.id)
    this.#bytes -= letter.bytes
    return letter
  }

  has(id: string): boolean {
    return this.#letters.has(id)
  }

  list(wanted: DeadLetterPage = {}): DeadLetter[] {
    const { before } = wanted
    const page = new LetterPage(wanted)
    const letters = [...(wanted.replayed ? this.#replayed : this.#letters).values()]
    // Ids grow with time.
    const newestFirst = letters.sort((a, b) => (a.id < b.id ? 1 : -1))
    page.add(
      newestFirst.flatMap((letter) => (before === undefined || letter.id < before ? [this.#listed(letter)] : [])),
    )
    return page.oldestFirst()
  }

  #listed(letter: MemoryLetter): DeadLetter {
    const { event, original, replay, parks } = letter
    return {
      id: letter.id,
      event: event.event,
      event_id: event.id,
      subscriber: letter.subscriber,
      error: letter.error,
      attempts: letter.attempts,
      ...(letter.blackBox === null ? {} : { black_box: letter.blackBox }),
      ...(parks ? { parked: true } : {}),
      ...(original === undefined ? {} : { original_keys: splitKeys(original.payloadKeys) }),
      ...(replay === undefined ? {} : { replay }),
      ...(parks && replay === undefined ? this.#parts.parked.shownOf(placeOf(letter)) : {}),
      payload_keys: splitKeys(event.payloadKeys),
      timestamp: new Date(letter.atMs).toISOString(),
      request_id: event.requestId,
    }
  }

  /** Its key stays blocked until the replay ends. */
  replay(id: string): boolean {
    const { hasConsumer, deliver, clock, parked } = this.#parts
    const letter = this.#letters.get(id)
    if (letter === undefined || !hasConsumer(letter.event.event, letter.group)) return false
    const event = hubEventOf({ ...letter.event, trace: letter.event.producer, delayMs: 0 }, 0, null)
    this.#take(letter)
    this.#running.set(event, id)
    const replay: LetterReplay = { at: new Date(clock.nowMs()).toISOString(), outcome: 'running' }
    this.#replayed.set(id, { ...letter, event: { ...letter.event, payload: '' }, replay })
    if (this.#replayed.size > REPLAYS_MAX) this.#replayed.delete(this.#replayed.keys().next().value!)
    if (letter.parks) parked.replaying(placeOf(letter), id, event)
    deliver(event, letter.group)
    return true
  }

  /**
   * Records the outcome if the delivery was a replay.
   * @param error why it failed again; null if handled. @param letter id of the new dead letter, if any
   */
  replayEnded(event: HubEvent, error: string | null, letter: string | null): void {
    if (this.#running.size === 0) return
    const id = this.#running.get(event)
    if (id === undefined) return
    this.#running.delete(event)
    const replayed = this.#replayed.get(id)
    if (replayed === undefined) return
    const { at } = replayed.replay!
    const replay: LetterReplay =
      error === null
        ? { at, outcome: 'done' }
        : { at, outcome: 'failed', error, ...(letter === null ? {} : { letter }) }
    this.#replayed.set(id, { ...replayed, replay })
  }

  payload(id: string): string | null {
    const letter = this.#letters.get(id)
    return letter === undefined ? null : Buffer.from(letter.event.payload, 'latin1').toString()
  }

  edit(id: string, json: string, keys: string): boolean {
    const letter = this.#letters.get(id)
    if (letter === undefined) return false
    const { event, original } = letter
    const payload = Buffer.from(json).toString('latin1')
    const kept = original ?? { payload: event.payload, payloadKeys: event.payloadKeys }
    const added = payload.length - (original === undefined ? 0 : event.payload.length)
    const edited = { ...event, payload, payloadKeys: keys }
    // In its old place: the oldest are dropped first.
    this.#letters.set(id, { ...letter, event: edited, original: kept, bytes: letter.bytes + added })
    this.#bytes += added
    return true
  }

  delete(id: string): boolean {
    const letter = this.#letters.get(id)
    if (letter === undefined) return false
    this.#take(letter)
    if (letter.parks) this.#parts.parked.letterGone(placeOf(letter), id)
    return true
  }
}

/** The key that a dead letter blocks. */
const placeOf = ({ event: { event, key }, group }: Pick<FailedDelivery, 'event' | 'group'>): KeyPlace => ({
  event,
  group,
  key,
})
