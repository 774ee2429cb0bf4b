import type { EventRow } from '../../runtime/event-log/event-rows.ts'
import { SLOT } from '../../runtime/event-log/key-slot.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'
import { NO_PROCESS } from '../../runtime/event-log/ownership.ts'
import { BLOCK_POSITIONS } from '../../transport/memory/log-memory.ts'
import { PAGE_ROWS, type StoredRow, withDeliveries } from './log-reader.ts'

/** Channel of the notifications of processes that share a log. */
export const CHANNEL = 'heddle_log'
/** Events of one slot that are taken together. */
const SLOT_ROWS = 32
/** At most one notification in this time, milliseconds. */
const TELL_MS = 5

/** What the others are told: there are events or copies for them, or processes or slots have changed. */
export type News = 'events' | 'copies' | 'processes'

const COLUMNS =
  'e.seq, e.ord, e.id, e.event, e.envelope, e.payload, e.key, e.due_ms, e.expires_ms, e.is_split, e.recovered'

/** In the order of their commits, as far as one can have seen the other; each slot from its first event on. */
const TAKE_KEYED = `
  UPDATE heddle_event AS e SET owner = $1
  FROM (
    SELECT next.seq, held.slot FROM heddle_slot AS held CROSS JOIN LATERAL (
      SELECT seq, ord FROM heddle_event WHERE owner = ${NO_PROCESS} AND ${SLOT} = held.slot ORDER BY ord, seq LIMIT ${SLOT_ROWS}) AS next
    WHERE held.holder = $1 AND held.heir = 0 AND EXISTS (SELECT 1 FROM heddle_process WHERE epoch = $1 AND adopter IS NULL)
    ORDER BY next.ord, next.seq LIMIT ${PAGE_ROWS}) AS taken
  WHERE e.seq = taken.seq AND e.owner = ${NO_PROCESS}
  RETURNING ${COLUMNS}, taken.slot`

/** Several processes take different ones. */
const TAKE_UNKEYED = `
  UPDATE heddle_event AS e SET owner = $1
  FROM (
    SELECT seq FROM heddle_event WHERE owner = ${NO_PROCESS} AND ${SLOT} IS NULL AND ($2::text[] IS NULL OR event = ANY($2::text[]))
    ORDER BY ord, seq LIMIT CAST($3 AS integer) FOR UPDATE SKIP LOCKED) AS taken
  WHERE e.seq = taken.seq AND EXISTS (SELECT 1 FROM heddle_process WHERE epoch = $1 AND adopter IS NULL)
  RETURNING ${COLUMNS}`

type FreeRow = EventRow & { ord: number; slot: number }

/** The events that belong to no process: takes those that this one is to deliver, and tells the others of those that are there for them. */
export class FreeEvents {
  readonly #database: () => LogDatabase
  readonly #epoch: () => number
  readonly #news = new Set<News>()
  #isTelling = false

  /** @param epoch number of this process */
  constructor(database: () => LogDatabase, epoch: () => number) {
    this.#database = database
    this.#epoch = epoch
  }

  /** Takes the next events of the keys that this process delivers, in their order; none when there are no more. */
  async takeKeyed(): Promise<StoredRow[]> {
    const database = this.#database()
    const { rows } = await database.execute<FreeRow>(TAKE_KEYED, [this.#epoch()])
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

  /** The same for those that have no key, and that nobody has tried. @returns their positions */
  async freeUnkeyed(positions: readonly number[]): Promise<number[]> {
    const { rows } = await this.#database().execute<{ seq: number }>(
      `UPDATE heddle_event SET owner = ${NO_PROCESS} WHERE owner = $1 AND seq = ANY($2::bigint[]) AND key IS NULL AND is_split = 0 RETURNING seq`,
      [this.#epoch(), `{${positions.join(',')}}`],
    )
    return rows.map(({ seq }) => Number(seq))
  }

  /** The same for all that have a key. @param but positions of those that are kept */
  async freeKeyed(but: readonly number[]): Promise<void> {
    await this.#database().execute(
      `UPDATE heddle_event SET owner = ${NO_PROCESS} WHERE owner = $1 AND key IS NOT NULL AND NOT seq = ANY($2::bigint[])`,
      [this.#epoch(), `{${but.join(',')}}`],
    )
  }

  /**
   * The same for all that have a key or were stored by other processes.
   * @param but positions of those that are kept
   * @param bases first positions of the blocks of this process
   */
  async freeUnknown(but: readonly number[], bases: readonly number[]): Promise<void> {
    const isForeign = bases.map((base) => `seq NOT BETWEEN ${base} AND ${base + BLOCK_POSITIONS - 1}`).join(' AND ')
    await this.#database().execute(
      `UPDATE heddle_event SET owner = ${NO_PROCESS} WHERE owner = $1 AND NOT seq = ANY($2::bigint[]) AND (key IS NOT NULL OR (${isForeign}))`,
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
      await new Promise((resolve) => setTimeout(resolve, TELL_MS))
    }
    this.#isTelling = false
  }
}
