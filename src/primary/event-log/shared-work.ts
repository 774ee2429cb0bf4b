// Events for other processes: work that they may do, and copies of broadcasts.

import { messageOf } from '../../core/errors/description.ts'
import { type Clock, nextTurn, pause } from '../../core/schedule/clock.ts'
import { type EventRow, NO_PROCESS } from '../../runtime/event-log/event-rows.ts'
import { SLOT } from '../../runtime/event-log/tables.ts'
import type { LogDatabase } from '../../runtime/event-store/database.ts'
import { frameOf } from '../../runtime/event-store/event-columns.ts'
import { asBytes, type EventFrame } from '../../transport/frames/event-frame.ts'
import { BLOCK_POSITIONS } from '../../transport/memory/log-memory.ts'
import { type Consumer, type EventSource, hubEventOf } from '../events/consumer.ts'
import type { Hub } from '../events/hub.ts'
import type { PositionQueue } from './positions.ts'
import type { Settler } from './settler.ts'
import { PAGE_ROWS, type StoredRow, withDeliveries } from './sql-log.ts'
import { newDelivery, type StoredEvent, type StoredEvents } from './stored-events.ts'

/** Channel of the notifications of processes that share a log. */
export const CHANNEL = 'heddle_log'
/** Events of one slot that are taken together. */
const SLOT_ROWS = 32
/** At most one notification in this time, milliseconds. */
const TELL_MS = 5

/** What the others are told: there are events or copies for them, or processes or slots have changed. */
type News = 'events' | 'copies' | 'processes'

const COLUMNS =
  'e.seq, e.ord, e.id, e.event, e.envelope, e.payload, e.key, e.due_ms, e.expires_ms, e.is_split, e.recovered'

/** In the order of their commits, as far as one can have seen the other; each slot from its first event on. */
const TAKE_KEYED = `
  UPDATE heddle_event AS e SET owner = $1
  FROM (
    SELECT next.seq, held.slot FROM heddle_slot AS held CROSS JOIN LATERAL (
      SELECT seq, ord FROM heddle_event WHERE owner = ${NO_PROCESS} AND ${SLOT} = held.slot ORDER BY ord, seq LIMIT ${SLOT_ROWS}) AS next
    WHERE held.holder = $1 AND held.heir = 0 AND held.slot = ANY($2::int[]) AND EXISTS (SELECT 1 FROM heddle_process WHERE epoch = $1 AND adopter IS NULL)
    ORDER BY next.ord, next.seq LIMIT ${PAGE_ROWS}) AS taken
  WHERE e.seq = taken.seq AND e.owner = ${NO_PROCESS}
  RETURNING ${COLUMNS}, taken.slot`

/** Several processes take different ones. What nobody subscribes to is anybody's: it is forgotten. */
const TAKE_UNKEYED = `
  UPDATE heddle_event AS e SET owner = $1
  FROM (
    SELECT seq FROM heddle_event AS free WHERE owner = ${NO_PROCESS} AND ${SLOT} IS NULL
      AND ($2::text[] IS NULL OR event = ANY($2::text[]) OR NOT EXISTS (SELECT 1 FROM heddle_group WHERE event = free.event))
    ORDER BY ord, seq LIMIT CAST($3 AS integer) FOR UPDATE SKIP LOCKED) AS taken
  WHERE e.seq = taken.seq AND EXISTS (SELECT 1 FROM heddle_process WHERE epoch = $1 AND adopter IS NULL)
  RETURNING ${COLUMNS}`

type FreeRow = EventRow & { ord: number; slot: number }

/** The events that belong to no process: takes those that this one is to deliver, and tells the others of those that are there for them. */
export class FreeEvents {
  readonly #database: () => LogDatabase
  readonly #epoch: () => number
  readonly #clock: Clock
  readonly #news = new Set<News>()
  #isTelling = false

  /** @param epoch number of this process */
  constructor(database: () => LogDatabase, epoch: () => number, clock: Clock) {
    this.#database = database
    this.#epoch = epoch
    this.#clock = clock
  }

  /**
   * Takes the next events of the keys that this process delivers, in their order; none when there are no more.
   * @param slots of which it knows what waits: one may be its own before it has heard of that
   */
  async takeKeyed(slots: ReadonlySet<number>): Promise<StoredRow[]> {
    const database = this.#database()
    const { rows } = await database.execute<FreeRow>(TAKE_KEYED, [this.#epoch(), `{${[...slots].join(',')}}`])
    rows.sort((a, b) => Number(a.ord) - Number(b.ord) || Number(a.seq) - Number(b.seq))
    const stored = await withDeliveries(database, rows)
    return stored.map((each, n) => ({ ...each, slot: Number(rows[n]!.slot) }))
  }

  /**
   * Takes events without keys that another process had too many of.
   * @param names of events; null: any
   */
  async takeUnkeyed(limit: number, names: readonly string[] | null): Promise<StoredRow[]> {
    const database = this.#database()
    const list = names === null ? null : `{${names.join(',')}}`
    const { rows } = await database.execute<EventRow>(TAKE_UNKEYED, [this.#epoch(), list, limit])
    return (await withDeliveries(database, rows)).map((each) => ({ ...each, isTaken: true }))
  }

  /** True while there are events without keys that no process has. */
  async hasUnkeyed(): Promise<boolean> {
    const row = await this.#database().queryOne(
      `SELECT 1 AS one FROM heddle_event WHERE owner = ${NO_PROCESS} AND ${SLOT} IS NULL LIMIT 1`,
    )
    return row !== null
  }

  /** How many events no process has: at most as many as the log may hold. */
  async count(most: number): Promise<number> {
    const row = await this.#database().queryOne<{ count: number }>(
      `SELECT count(*) AS count FROM (SELECT 1 FROM heddle_event WHERE owner = ${NO_PROCESS} LIMIT CAST($1 AS bigint)) AS free`,
      [most],
    )
    return Number(row!.count)
  }

  /** Events of this process are there for others. */
  async free(positions: readonly number[]): Promise<void> {
    await this.#database().execute(
      `UPDATE heddle_event SET owner = ${NO_PROCESS} WHERE owner = $1 AND seq = ANY($2::bigint[])`,
      [this.#epoch(), `{${positions.join(',')}}`],
    )
  }

  /** The same for those that have no key, that nobody has tried, and that a known group gets: what others do not know of they forget. @returns their positions */
  async freeUnkeyed(positions: readonly number[]): Promise<number[]> {
    const { rows } = await this.#database().execute<{ seq: number }>(
      `UPDATE heddle_event SET owner = ${NO_PROCESS} WHERE owner = $1 AND seq = ANY($2::bigint[]) AND key IS NULL AND is_split = 0
         AND EXISTS (SELECT 1 FROM heddle_group WHERE event = heddle_event.event) RETURNING seq`,
      [this.#epoch(), `{${positions.join(',')}}`],
    )
    return rows.map(({ seq }) => Number(seq))
  }

  /** The same for all that have a key. @param but positions of those that are kept */
  freeKeyed(but: readonly number[]): Promise<void> {
    return this.#freeWhere('key IS NOT NULL', but)
  }

  /**
   * The same for all that have a key or were stored by other processes.
   * @param but positions of those that are kept
   * @param bases first positions of the blocks of this process
   */
  freeUnknown(but: readonly number[], bases: readonly number[]): Promise<void> {
    const isForeign = bases.map((base) => `seq NOT BETWEEN ${base} AND ${base + BLOCK_POSITIONS - 1}`).join(' AND ')
    return this.#freeWhere(`(key IS NOT NULL OR (${isForeign}))`, but)
  }

  async #freeWhere(condition: string, but: readonly number[]): Promise<void> {
    await this.#database().execute(
      `UPDATE heddle_event SET owner = ${NO_PROCESS} WHERE owner = $1 AND NOT seq = ANY($2::bigint[]) AND ${condition}`,
      [this.#epoch(), `{${but.join(',')}}`],
    )
  }

  /** Tells the other processes, once for many: a notification on a user's commit would make the commits of the server wait for each other. */
  tell(news: News): void {
    this.#news.add(news)
    if (!this.#isTelling) void this.#tellAll()
  }

  async #tellAll(): Promise<void> {
    this.#isTelling = true
    while (this.#news.size > 0) {
      const news = [...this.#news].join(',')
      this.#news.clear()
      try {
        await this.#database().query(`SELECT pg_notify('${CHANNEL}', $1)`, [`${this.#epoch()} ${news}`])
      } catch {
        // The others look from time to time.
      }
      await pause(this.#clock, TELL_MS)
    }
    this.#isTelling = false
  }
}

/** How often it is looked whether there is too much here, milliseconds. */
const LOOK_MS = 250
/** A process keeps of each subscriber what it does in so many looks, and this many events. */
const KEPT_LOOKS = 2
const KEPT_EVENTS = 4
/** While a subscriber has fewer waiting, it gets more of what others have left. */
const HUNGRY_BELOW = 4
/** Events that are taken together: few at first, and twice as many each time that they are done soon. */
const TAKE_MIN = 8
const TAKE_MAX = 128
const SOON_MS = 50
/** Positions that are changed in one statement. */
const PAGE = 1000

/** In place of the names of all events. */
const ANY = '*'

interface SharedWorkParts {
  hub: Hub
  events: StoredEvents
  settler: Settler
  clock: Clock
  free: FreeEvents
  /** Positions of events that the hub had no room for. */
  passed: PositionQueue
  /** A broker gets the events: it takes them all. */
  isRelayed: boolean
}

/** Leaves events without keys to other processes when they would wait too long here, and takes what others have left while there is room. */
export class SharedWork {
  readonly #parts: SharedWorkParts
  /** What each subscriber had done at the last look. */
  #ended = new Map<Consumer, number>()
  #lookedMs = 0
  #taken = TAKE_MIN
  /** Events of which there were none; some may have come since. */
  readonly #absent = new Set<string>()
  /** There may be some to which nobody subscribes. */
  #mayHaveUnwanted = true
  #tookMs = 0

  constructor(parts: SharedWorkParts) {
    this.#parts = parts
  }

  /** Others may have left something. */
  expect(): void {
    this.#absent.clear()
    this.#mayHaveUnwanted = true
  }

  /** Events of which this process could do more now, and of which there may be some. Those of a paused subscriber are none. */
  get #hungry(): string[] {
    if (this.#parts.isRelayed) return this.#absent.has(ANY) ? [] : [ANY]
    const names = new Set<string>()
    for (const { event } of this.#parts.hub.workloads()) names.add(event)
    for (const { event, isPaused, instances, queue } of this.#parts.hub.workloads())
      if (isPaused || instances.length === 0 || queue.waiting.size >= HUNGRY_BELOW) names.delete(event)
    for (const event of this.#absent) names.delete(event)
    return [...names]
  }

  /** True while it could do more. */
  get isHungry(): boolean {
    return this.#mayHaveUnwanted || this.#hungry.length > 0
  }

  /** Takes some of what others have left; none when there is nothing for it at present. */
  async take(): Promise<StoredRow[]> {
    const wasSoon = this.#parts.clock.steadyMs() - this.#tookMs < SOON_MS
    this.#taken = wasSoon ? Math.min(TAKE_MAX, this.#taken * 2) : TAKE_MIN
    const names = this.#hungry
    for (const name of names) this.#absent.add(name)
    this.#mayHaveUnwanted = false
    const rows = await this.#parts.free.takeUnkeyed(this.#taken, names.includes(ANY) ? null : names)
    if (rows.length > 0) {
      for (const name of names) this.#absent.delete(name)
      this.#mayHaveUnwanted = true
    }
    this.#tookMs = this.#parts.clock.steadyMs()
    return rows
  }

  /** Leaves what would wait too long to the others. */
  async leave(): Promise<void> {
    if (this.#parts.clock.steadyMs() - this.#lookedMs < LOOK_MS) return
    this.#lookedMs = this.#parts.clock.steadyMs()
    const excess = this.#excess()
    const isPassedLeft = await this.#leavePassed()
    const isLeft = excess.size > 0 && (await this.giveBack(({ seq, isSharable }) => isSharable && excess.has(seq)))
    if (isPassedLeft || isLeft) this.#parts.free.tell('events')
  }

  /** Events that no thread has belong to no process any more. @returns whether there were some */
  async giveBack(isWanted: (event: StoredEvent) => boolean): Promise<boolean> {
    const { hub, events, settler, free, passed } = this.#parts
    const given = events.giveBack(isWanted, (isTaken) => hub.takeBack(isTaken))
    if (given.length === 0) return false
    await settler.written()
    await free.free(given).catch((error: unknown) => {
      // They are read from the log when they are still this process's.
      for (const seq of given) passed.push(seq)
      throw error
    })
    return true
  }

  /** Positions of the events that wait behind as many as their subscriber does in some time. */
  #excess(): Set<number> {
    const excess = new Set<number>()
    const ended = new Map<Consumer, number>()
    for (const consumer of this.#parts.hub.workloads()) {
      ended.set(consumer, consumer.ended)
      const { waiting } = consumer.queue
      const done = consumer.ended - (this.#ended.get(consumer) ?? consumer.ended)
      let kept = KEPT_EVENTS + done * KEPT_LOOKS
      if (waiting.size <= kept || !this.#ended.has(consumer)) continue
      // One that ends with its thread is not known to the others: they would forget what is for it.
      if (!this.#parts.hub.groups?.isKnown(consumer.event, consumer.group)) continue
      for (const { event } of waiting) if (kept-- <= 0 && event.seq > 0) excess.add(event.seq)
    }
    this.#ended = ended
    return excess
  }

  /** What the hub had no room for is not needed here. */
  async #leavePassed(): Promise<boolean> {
    const { passed, free } = this.#parts
    if (passed.size === 0) return false
    const positions = passed.list()
    const left = new Set<number>()
    for (let from = 0; from < positions.length; from += PAGE)
      for (const seq of await free.freeUnkeyed(positions.slice(from, from + PAGE))) left.add(seq)
    passed.remove(left)
    return left.size > 0
  }
}

/** Copies that are read in one step. */
const COPIES_PAGE = 128
/** Pause before copies are made again that the database did not take, milliseconds. */
const RETRY_MS = 250

/** For the processes that take part at this moment. Whoever comes later has missed it, as a thread that starts later has. */
const MAKE = `
  INSERT INTO heddle_copy (reader, number, id, event, envelope, payload, key, expires_ms)
  SELECT reader, nextval('heddle_order'), id, event, envelope, payload, key, expires_ms FROM (
    SELECT epoch AS reader, heddle_event.* FROM unnest($2::bigint[]) WITH ORDINALITY AS listed (seq, place)
      JOIN heddle_event USING (seq) CROSS JOIN heddle_process
    WHERE epoch <> $1 AND is_ready = 1 AND is_clean = 0 AND adopter IS NULL ORDER BY place) AS copies`
const READ = `
  SELECT number, id, event, envelope, payload, key, expires_ms FROM heddle_copy WHERE reader = $1 ORDER BY number LIMIT ${COPIES_PAGE}`

type CopyRow = Pick<EventRow, 'id' | 'event' | 'envelope' | 'payload' | 'key' | 'expires_ms'> & { number: number }

interface CopiesParts {
  hub: Hub
  settler: Settler
  clock: Clock
  database: () => LogDatabase
  /** Number of this process. */
  epoch: () => number
  /** The copies of an event are stored. */
  onStored: (event: StoredEvent) => void
  /** There are copies for others. */
  onMade: () => void
  /** A copy holds no event. */
  onMalformed: (number: number, why: string) => void
}

/**
 * Copies of broadcast events for the other processes: the one that delivers an event makes one for each, and forgets the event only then. A process
 * deletes its copies as soon as its threads have them, which end with it.
 */
export class BroadcastCopies {
  readonly #parts: CopiesParts
  /** Events to be copied. */
  #waiting: StoredEvent[] = []
  #isMaking = false
  /** Of a delivery of a copy only its dead letter is stored. */
  readonly #source: EventSource
  /** Copies that the threads have, and whose deletion is not known to be committed. */
  readonly #delivered = new Set<number>()

  constructor(parts: CopiesParts) {
    this.#parts = parts
    this.#source = {
      isBroker: false,
      storeDeadLetter: (_, letter) => parts.settler.letter(parts.settler.rowOf(letter)),
      ended: () => {},
    }
  }

  /** Copies an event that is stored: it is held until the copies are, too. */
  make(event: StoredEvent): void {
    event.isHeld = true
    event.deliveries++
    this.#waiting.push(event)
    if (!this.#isMaking) void this.#makeAll()
  }

  async #makeAll(): Promise<void> {
    const { database, epoch, onStored, onMade } = this.#parts
    this.#isMaking = true
    // What has come in the same turn of the loop is copied together.
    await nextTurn(this.#parts.clock)
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, COPIES_PAGE)
      try {
        await database().execute(MAKE, [epoch(), `{${batch.map(({ seq }) => seq).join(',')}}`])
        for (const event of batch) onStored(event)
        onMade()
      } catch {
        // The process says itself that the log cannot be used.
        this.#waiting.unshift(...batch)
        await pause(this.#parts.clock, RETRY_MS)
      }
    }
    this.#isMaking = false
  }

  /** Gives the next copies for this process to its threads. @returns false when there was none */
  async deliver(): Promise<boolean> {
    const { database, epoch } = this.#parts
    const rows = await database().query<CopyRow>(READ, [epoch()])
    if (rows.length === 0) return false
    const numbers = rows.map(({ number }) => Number(number))
    for (const row of rows) {
      if (this.#delivered.has(Number(row.number))) continue
      this.#delivered.add(Number(row.number))
      const frame = this.#frameOf(row)
      if (frame !== null) this.#deliver(asBytes(frame), Number(row.expires_ms))
    }
    const list = `{${numbers.join(',')}}`
    await database().execute('DELETE FROM heddle_copy WHERE reader = $1 AND number = ANY($2::bigint[])', [
      epoch(),
      list,
    ])
    for (const number of numbers) this.#delivered.delete(number)
    return true
  }

  #deliver(frame: EventFrame, expiresMs: number): void {
    const { hub } = this.#parts
    hub.record(frame, null)
    const groups = hub.broadcastGroupsOf(frame.event)
    hub.take(
      hubEventOf(frame, expiresMs, this.#source),
      groups.map((group) => newDelivery(0, group)),
    )
  }

  #frameOf(row: CopyRow): EventFrame | null {
    try {
      return frameOf({ ...row, seq: 0 })
    } catch (error) {
      this.#parts.onMalformed(Number(row.number), messageOf(error))
      return null
    }
  }
}

/** Removes copies of processes that are not known any more. */
export async function dropCopies(database: LogDatabase): Promise<void> {
  await database.execute('DELETE FROM heddle_copy WHERE reader NOT IN (SELECT epoch FROM heddle_process)')
}
