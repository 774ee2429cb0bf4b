// Dead letters in memory: kept, filtered, shown in pages, replayed.

import type { Awaitable } from '../../contracts/common.ts'
import type { DeadLetter, DeadLetterPage, LetterReplay } from '../../contracts/event-bus.ts'
import type { Payload } from '../../contracts/events.ts'
import type { Chance, Clock } from '../../core/schedule/clock.ts'
import { splitKeys } from '../../runtime/events/publication.ts'
import { type FailedDelivery, type HubEvent, hubEventOf } from './consumer.ts'
import type { BlockedKeys, KeyPlace } from './key-order.ts'
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
function isWanted(deadLetter: DeadLetter, wanted: DeadLetterPage): boolean {
  const { event, subscriber, error, since, until, parked, ids } = wanted
  if (parked !== undefined && (deadLetter.parked === true) !== parked) return false
  if (event !== undefined && deadLetter.event !== event) return false
  if (subscriber !== undefined && deadLetter.subscriber !== subscriber) return false
  if (error !== undefined && !deadLetter.error.includes(error)) return false
  // ISO 8601 texts of one form sort by time.
  if (since !== undefined && deadLetter.timestamp < isoOf(since)) return false
  if (until !== undefined && deadLetter.timestamp >= isoOf(until)) return false
  return ids === undefined || ids.includes(deadLetter.id)
}

const isoOf = (time: Date | string): string => (typeof time === 'string' ? time : time.toISOString())

/** Maximum and default number of dead letters of a page. */
const DEAD_LETTERS_PAGE_MAX = 1000
/** Maximum size of a page as JSON, except for its newest dead letter. */
export const DEAD_LETTERS_PAGE_BYTES = 4 * 1024 * 1024

/** Collects one page of the dead letters, from the newest to older ones. */
export class DeadLetterCollector {
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
    for (const deadLetter of newestFirst) {
      if (!isWanted(deadLetter, this.#wanted)) continue
      const bytes = Buffer.byteLength(JSON.stringify(deadLetter))
      const isTooLarge = this.#bytes + bytes > DEAD_LETTERS_PAGE_BYTES && this.#newestFirst.length > 0
      if (this.#isFull || isTooLarge) return true
      this.#newestFirst.push(deadLetter)
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

/** Payloads that are read together: each may have a MiB. */
const PAYLOADS = 50

/** A page, with payloads if they are wanted: the newest that have room in it. */
export async function listDeadLetters(from: DeadLetters, wanted: DeadLetterPage): Promise<DeadLetter[]> {
  const listed = await from.list(wanted)
  if (wanted.payloads !== true) return listed
  const newestFirst: DeadLetter[] = []
  let bytes = 0
  for (let end = listed.length; end > 0 && bytes < DEAD_LETTERS_PAGE_BYTES; end -= PAYLOADS) {
    const some = listed.slice(Math.max(0, end - PAYLOADS), end).reverse()
    const payloads = await Promise.all(some.map(({ id }) => from.payload(id)))
    for (const [n, json] of payloads.entries()) {
      bytes += json === null ? 0 : Buffer.byteLength(json)
      if (bytes > DEAD_LETTERS_PAGE_BYTES && newestFirst.length > 0) break
      newestFirst.push({ ...some[n]!, ...payloadIn(json) })
    }
  }
  return newestFirst.reverse()
}

/** Others may have written the letter: then it is shown without. */
function payloadIn(json: string | null): Pick<DeadLetter, 'payload'> {
  if (json === null) return {}
  try {
    return { payload: JSON.parse(json) as Payload }
  } catch {
    return {}
  }
}

/** Counts the dead letters dropped for new ones, and logs the first. */
export class DroppedDeadLetters {
  readonly #tell: (message: string) => void
  #count = 0

  constructor(tell: (message: string) => void) {
    this.#tell = tell
  }

  /** Since the start of the process. */
  get count(): number {
    return this.#count
  }

  add(deadLetters: number): void {
    if (this.#count === 0 && deadLetters > 0) {
      this.#tell(
        'The dead-letter store is full: the oldest dead letters are dropped for new ones (EVENT_BUS_MAX_DEAD_BYTES). Further drops are counted and not logged',
      )
    }
    this.#count += deadLetters
  }
}

/** Maximum number of replayed dead letters; above it the oldest are forgotten. */
const REPLAYS_MAX = 1000
/** Maximum number of dead letters; above it the oldest is dropped. */
const DEAD_LETTERS_MAX = 1000
/** Default of EVENT_BUS_MAX_DEAD_BYTES. */
export const DEAD_LETTERS_MAX_BYTES = 67_108_864
/** Estimated size of a dead letter beside its texts, bytes. */
const DEAD_LETTER_BYTES = 1024

/** A failed delivery with everything its replay needs. */
interface MemoryDeadLetter extends Omit<FailedDelivery, 'trace'> {
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
  blockedKeys: BlockedKeys
  hasConsumer: (event: string, group: string) => boolean
  /** Delivers an event to one of its groups alone. */
  deliver: (event: HubEvent, group: string) => void
}

/** The dead letters of events in memory. */
export class MemoryDeadLetters implements DeadLetters {
  /** Dead letters dropped for new ones, here or in the store of the streams. */
  readonly dropped: DroppedDeadLetters
  readonly #parts: MemoryDeadLettersParts
  readonly #deadLetters = new Map<string, MemoryDeadLetter>()
  /** Replayed dead letters, without their payloads. */
  readonly #replayed = new Map<string, MemoryDeadLetter>()
  /** Ids of the dead letters with a running replay, by event. */
  readonly #running = new Map<HubEvent, string>()
  #bytes = 0

  constructor(parts: MemoryDeadLettersParts) {
    this.#parts = parts
    this.dropped = new DroppedDeadLetters((message) => parts.log('WARNING', message))
  }

  /** Adds a dead letter. With `parks` it blocks its key. Keys blocked by the dropped ones are unblocked. */
  add({ trace: _, ...failed }: FailedDelivery): void {
    const { chance, clock, blockedKeys } = this.#parts
    const id = `dl_${chance.id()}`
    const { event, error } = failed
    const blackBox = failed.blackBox === null ? null : { ...failed.blackBox, steps: [] }
    const boxBytes = blackBox === null ? 0 : JSON.stringify(blackBox).length
    const bytes = DEAD_LETTER_BYTES + event.payload.length + event.payloadKeys.length + 2 * error.length + boxBytes
    this.#deadLetters.set(id, { ...failed, blackBox, id, atMs: clock.nowMs(), bytes })
    this.#bytes += bytes
    const dropped = this.#dropOldest()
    this.dropped.add(dropped.length)
    if (failed.parks) blockedKeys.block(placeOf(failed), id)
    this.replayEnded(event, error, id)
    for (const old of dropped) if (old.parks) blockedKeys.deadLetterGone(placeOf(old), old.id)
  }

  /** The new one stays, whatever its size: events have a size limit of their own. */
  #dropOldest(): MemoryDeadLetter[] {
    const maxBytes = this.#parts.maxDeadBytes ?? DEAD_LETTERS_MAX_BYTES
    const dropped: MemoryDeadLetter[] = []
    while (this.#deadLetters.size > DEAD_LETTERS_MAX || (this.#bytes > maxBytes && this.#deadLetters.size > 1))
      dropped.push(this.#take(this.#deadLetters.values().next().value!))
    return dropped
  }

  #take(deadLetter: MemoryDeadLetter): MemoryDeadLetter {
    this.#deadLetters.delete(deadLetter.id)
    this.#bytes -= deadLetter.bytes
    return deadLetter
  }

  /** Its event; null if there is no such dead letter. */
  eventOf(id: string): HubEvent | null {
    return this.#deadLetters.get(id)?.event ?? null
  }

  /** The subscriber of each that waits. */
  *places(): Iterable<{ event: string; group: string }> {
    for (const { event, group } of this.#deadLetters.values()) yield { event: event.event, group }
  }

  list(wanted: DeadLetterPage = {}): DeadLetter[] {
    const { before } = wanted
    const page = new DeadLetterCollector(wanted)
    const deadLetters = [...(wanted.replayed ? this.#replayed : this.#deadLetters).values()]
    // Ids grow with time.
    const newestFirst = deadLetters.sort((a, b) => (a.id < b.id ? 1 : -1))
    page.add(
      newestFirst.flatMap((deadLetter) =>
        before === undefined || deadLetter.id < before ? [this.#listed(deadLetter)] : [],
      ),
    )
    return page.oldestFirst()
  }

  #listed(deadLetter: MemoryDeadLetter): DeadLetter {
    const { event, original, replay, parks } = deadLetter
    return {
      id: deadLetter.id,
      event: event.event,
      event_id: event.id,
      subscriber: deadLetter.subscriber,
      error: deadLetter.error,
      attempts: deadLetter.attempts,
      ...(deadLetter.blackBox === null ? {} : { black_box: deadLetter.blackBox }),
      ...(parks ? { parked: true } : {}),
      ...(original === undefined ? {} : { original_keys: splitKeys(original.payloadKeys) }),
      ...(replay === undefined ? {} : { replay }),
      ...(parks && replay === undefined ? this.#parts.blockedKeys.shownOf(placeOf(deadLetter)) : {}),
      payload_keys: splitKeys(event.payloadKeys),
      timestamp: new Date(deadLetter.atMs).toISOString(),
      request_id: event.requestId,
    }
  }

  /** Its key stays blocked until the replay ends. */
  replay(id: string): boolean {
    const { hasConsumer, deliver, clock, blockedKeys } = this.#parts
    const deadLetter = this.#deadLetters.get(id)
    if (deadLetter === undefined || !hasConsumer(deadLetter.event.event, deadLetter.group)) return false
    const event = hubEventOf({ ...deadLetter.event, trace: deadLetter.event.producer, delayMs: 0 }, 0, null)
    this.#take(deadLetter)
    this.#running.set(event, id)
    const replay: LetterReplay = { at: new Date(clock.nowMs()).toISOString(), outcome: 'running' }
    this.#replayed.set(id, { ...deadLetter, event: { ...deadLetter.event, payload: '' }, replay })
    if (this.#replayed.size > REPLAYS_MAX) this.#replayed.delete(this.#replayed.keys().next().value!)
    if (deadLetter.parks) blockedKeys.replaying(placeOf(deadLetter), id, event)
    deliver(event, deadLetter.group)
    return true
  }

  /**
   * Records the outcome if the delivery was a replay.
   * @param error why it failed again; null if handled. @param letter id of the new dead letter, if any
   */
  replayEnded(event: HubEvent, error: string | null, deadLetter: string | null): void {
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
        : { at, outcome: 'failed', error, ...(deadLetter === null ? {} : { letter: deadLetter }) }
    this.#replayed.set(id, { ...replayed, replay })
  }

  payload(id: string): string | null {
    const deadLetter = this.#deadLetters.get(id)
    return deadLetter === undefined ? null : Buffer.from(deadLetter.event.payload, 'latin1').toString()
  }

  edit(id: string, json: string, keys: string): boolean {
    const deadLetter = this.#deadLetters.get(id)
    if (deadLetter === undefined) return false
    const { event, original } = deadLetter
    const payload = Buffer.from(json).toString('latin1')
    const kept = original ?? { payload: event.payload, payloadKeys: event.payloadKeys }
    const added = payload.length - (original === undefined ? 0 : event.payload.length)
    const edited = { ...event, payload, payloadKeys: keys }
    // In its old place: the oldest are dropped first.
    this.#deadLetters.set(id, { ...deadLetter, event: edited, original: kept, bytes: deadLetter.bytes + added })
    this.#bytes += added
    return true
  }

  delete(id: string): boolean {
    const deadLetter = this.#deadLetters.get(id)
    if (deadLetter === undefined) return false
    this.#take(deadLetter)
    if (deadLetter.parks) this.#parts.blockedKeys.deadLetterGone(placeOf(deadLetter), id)
    return true
  }
}

/** The key that a dead letter blocks. */
const placeOf = ({ event: { event, key }, group }: Pick<FailedDelivery, 'event' | 'group'>): KeyPlace => ({
  event,
  group,
  key,
})
