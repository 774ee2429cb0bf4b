// All that is read of the log's tables, but for what several processes share.
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { Chance, Clock } from '../../core/schedule/clock.ts'
import { until } from '../../core/schedule/waiting.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import { andOwned, type EventRow, WAITS_FOR_GROUP } from '../../runtime/event-log/event-rows.ts'
import { insertLetter } from '../../runtime/event-log/write-changes.ts'
import { type LogDatabase, ownTransaction } from '../../runtime/event-store/database.ts'
import { frameOf, keyOf } from '../../runtime/event-store/event-columns.ts'
import {
  type DeadRow,
  DUE_BEGUN,
  DUE_BEGUN_WITH_GROUP,
  type GroupRow,
  type WaitingDelivery,
} from '../../transport/log-changes.ts'
import type { LogMemory } from '../../transport/memory/log-memory.ts'

/** Rows of one page: the primary reads them between two turns of its loop. */
export const PAGE_ROWS = 128
/** Positions that are read in one step, without their events. */
export const PAGE_POSITIONS = 1000
/** Events that are counted in one step, at most. */
export const COUNTED_MAX = 10_000
/** How long a file may still be another process's, milliseconds: one that ends at this moment has it for a little longer. */
const CLAIM_MS = 1000

const EVENT = 'SELECT seq, id, event, envelope, payload, key, due_ms, expires_ms, is_split FROM heddle_event'
const AFTER = `${EVENT} WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT ${PAGE_ROWS}`
const LISTED = `${EVENT} WHERE seq IN (${Array.from({ length: PAGE_ROWS }, (_, n) => `$${n + 1}`).join(', ')})`
const WAITING = `SELECT d.seq FROM heddle_delivery d JOIN heddle_event e ON e.seq = d.seq
  WHERE d.grp = $1 AND d.due_ms < 0 AND d.seq > $2 AND d.seq <= $3 AND e.event = $4`
const IN_ORDER = `ORDER BY d.seq LIMIT ${PAGE_ROWS}`
const RETURNED = `${EVENT} WHERE seq IN (${WAITING} ${IN_ORDER}) ORDER BY seq`
/** Takes them over, while this process is what it takes itself for. What it has taken already, and had no answer, is named again. */
const TAKE_RETURNED = `UPDATE heddle_event SET owner = $3
  WHERE seq IN (SELECT d.seq FROM heddle_delivery d JOIN heddle_event e ON e.seq = d.seq
      WHERE d.grp = $1 AND d.due_ms < 0 AND d.seq > $4 AND e.event = $2 AND e.owner IN (${WAITS_FOR_GROUP}, $3)
      ${IN_ORDER} FOR UPDATE OF e SKIP LOCKED)
    AND EXISTS (SELECT 1 FROM heddle_process WHERE epoch = $3 AND adopter IS NULL)
  RETURNING seq`

const IN_USE = 'in_use'
const UNCLEAN_END = 'unclean_end '

/** An event as it is stored. */
export interface StoredRow {
  row: EventRow
  /** Its deliveries that are left; null: all. */
  left: readonly WaitingDelivery[] | null
  /** Slot of its key, where several processes share the log. */
  slot?: number
  /** It was left by another process that had too many. */
  isTaken?: boolean
  /** It was stored by another process, and this one reads it for the first time. */
  isNew?: boolean
  /** Groups of which one death more is stored than has happened: this process may die of their attempt. */
  trial?: readonly string[]
}

/** A letter that other events wait for, or that is being replayed. */
export interface OpenLetter {
  id: string
  place: { event: string; group: string; key: string | null }
  isParked: boolean
  /** Position of the event that it has become; 0: it waits. */
  seq: number
  /** When it has become that, milliseconds since the epoch. */
  replayedMs: number
}

/** An event's name and one of its groups. */
export interface EventGroup {
  event: string
  group: string
}

/** Where events that are due are read on. */
export interface DuePlace {
  dueMs: number
  seq: number
}

/** A change of the system's clock. */
export interface ClockJump {
  /** By so much it was set ahead; negative: back. Even. */
  ms: number
  /** The first position of this process. */
  first: number
  /** Events from this position on were stored by the new clock if that was between these two times. */
  next: number
  sinceMs: number
  untilMs: number
  /** Positions of events with deliveries that wait for their next attempt. */
  retries: readonly number[]
}

/** The log as this process reads it. Where several share it, each reads what it owns, but for what waits for groups. */
export class SqlLog {
  readonly memory: LogMemory
  readonly clock: Clock
  readonly chance: Chance
  readonly #log: EventLog

  constructor(log: EventLog) {
    this.#log = log
    this.memory = log.memory
    this.clock = log.clock
    this.chance = log.chance
  }

  /** True where several processes may share it. */
  get isShared(): boolean {
    return this.#log.isOnServer
  }

  get #db(): LogDatabase {
    return this.#log.database
  }

  /** Of this process; 0 where it has the log alone. */
  get #epoch(): number {
    return this.memory.epoch
  }

  // ── open and close ────────────────────────────────────────────────────────

  /**
   * Has the log of a database file for this process alone: two would give the same positions to different events, and deliver each other's.
   * @throws DATABASE_TAKEN while another process has it
   */
  async claimFile(): Promise<void> {
    const isFree = (): boolean => this.#db.claim?.() !== false
    await until(isFree, this.clock.steadyMs() + CLAIM_MS, { clock: this.clock })
    if (isFree()) return
    throw new HeddleError(
      'DATABASE_TAKEN',
      'Another process has the event log of this database file: SQLite serves one process. Stop that one, or use PostgreSQL, which serves any number',
    )
  }

  /** The first and the last position that are taken. Without an event `first` is one above `last`. */
  async positions(): Promise<{ first: number; last: number }> {
    const row = await this.#db.queryOne<{ first: number | null; last: number | null }>(
      'SELECT (SELECT min(seq) FROM heddle_event) AS first, (SELECT max(seq) FROM heddle_event) AS last',
    )
    return { first: Number(row?.first ?? 1), last: Number(row?.last ?? 0) }
  }

  /**
   * Notes that a process uses the log.
   * @param last the last position that is taken
   * @returns up to where there were events each time that a process ended without order
   */
  noteStart(first: number, last: number): Promise<number[]> {
    return ownTransaction(this.#db, async (tx) => {
      const notes = await tx.query<{ name: string; value: number }>('SELECT name, value FROM heddle_log')
      const isUnclean = notes.some(({ name }) => name === IN_USE)
      const ends = notes.filter(({ name }) => name.startsWith(UNCLEAN_END)).map(({ value }) => Number(value))
      if (isUnclean && last > 0) {
        await tx.execute('INSERT INTO heddle_log (name, value) VALUES ($1, $2)', [
          `${UNCLEAN_END}${this.chance.id()}`,
          last,
        ])
        ends.push(last)
      }
      // Events that old are gone.
      await tx.execute('DELETE FROM heddle_log WHERE name LIKE $1 AND value < $2', [`${UNCLEAN_END}%`, first])
      await tx.execute('INSERT INTO heddle_log (name, value) VALUES ($1, 1) ON CONFLICT (name) DO NOTHING', [IN_USE])
      return ends.filter((end) => end >= first)
    })
  }

  /** Notes that the process has ended in order: what is left has nothing to do with it. */
  async noteEnd(): Promise<void> {
    await this.#db.execute('DELETE FROM heddle_log WHERE name = $1 OR name LIKE $2', [IN_USE, `${UNCLEAN_END}%`])
  }

  // ── events ────────────────────────────────────────────────────────────────

  /** Events after one position, up to another, the oldest first: at most a page. */
  async readAfter(after: number, last: number): Promise<StoredRow[]> {
    return withDeliveries(this.#db, await this.#db.query<EventRow>(AFTER, [after, last]))
  }

  /**
   * What belongs to another process is left out.
   * @param positions at most a page
   * @returns their events in the order in which they are listed: that of their times, or of their arrival
   */
  async readListed(positions: readonly number[]): Promise<StoredRow[]> {
    const list = [...positions]
    while (list.length < PAGE_ROWS) list.push(list.at(-1)!)
    const events = await this.#db.query<EventRow>(`${LISTED}${andOwned(this.#epoch)} ORDER BY seq`, list)
    const rows = await withDeliveries(this.#db, events)
    const places = new Map(positions.map((seq, n) => [seq, n]))
    const placeOf = ({ row }: StoredRow): number => places.get(Number(row.seq)) ?? 0
    return rows.sort((a, b) => placeOf(a) - placeOf(b))
  }

  /** Where several processes share the log: positions in the order in which their events were committed. What is gone is left out. */
  async inOrderOfCommits(positions: readonly number[]): Promise<number[]> {
    if (positions.length < 2) return [...positions]
    const rows = await this.#db.query<{ seq: number }>(
      'SELECT seq FROM heddle_event WHERE seq = ANY($1::bigint[]) ORDER BY ord, seq',
      [`{${positions.join(',')}}`],
    )
    return rows.map(({ seq }) => Number(seq))
  }

  /** The next positions after a place in the order of the times, up to a time. @returns with the times; at most PAGE_POSITIONS */
  async readDue({ dueMs, seq }: DuePlace, untilMs: number): Promise<DuePlace[]> {
    const rows = await this.#db.query<{ seq: number; due_ms: number }>(
      `SELECT seq, due_ms FROM heddle_event
       WHERE due_ms > 0 AND due_ms <= $1 AND (due_ms > $2 OR (due_ms = $2 AND seq > $3))${andOwned(this.#epoch)}
       ORDER BY due_ms, seq LIMIT ${PAGE_POSITIONS}`,
      [untilMs, dueMs, seq],
    )
    return rows.map((row) => ({ dueMs: Number(row.due_ms), seq: Number(row.seq) }))
  }

  /** The first position that is free; 0 while nobody knows. */
  get nextFree(): number {
    try {
      return this.memory.isOpen ? this.memory.next : 0
    } catch {
      // No block of positions is left.
      return 0
    }
  }

  /** Moves what this process has stored by as much as the clock was set, but no dates, and nothing that was stored by the new clock. */
  async moveDue({ ms, first, next, sinceMs, untilMs, retries }: ClockJump): Promise<void> {
    const waiting = `due_ms > 0 AND due_ms % 2 = 0${andOwned(this.#epoch)}`
    const recent = await this.#db.query<EventRow>(
      `SELECT seq, id, event, envelope, '' AS payload, NULL AS key FROM heddle_event WHERE ${waiting} AND seq >= $1`,
      [next],
    )
    const fresh = recent.filter((row) => {
      const atMs = storedAtMs(row)
      return atMs >= sinceMs && atMs <= untilMs
    })
    const exceptFresh = fresh.length === 0 ? '' : ` AND seq NOT IN (${fresh.map(({ seq }) => seq).join()})`
    await ownTransaction(this.#db, async (tx) => {
      await tx.execute(
        `UPDATE heddle_event SET due_ms = due_ms + $1, expires_ms = CASE expires_ms WHEN 0 THEN 0 ELSE expires_ms + $2 END
         WHERE ${waiting} AND seq >= $3${exceptFresh}`,
        [ms, ms, first],
      )
      if (retries.length === 0) return
      const sql = `UPDATE heddle_delivery SET due_ms = due_ms + $1 WHERE due_ms > 0 AND seq IN (${retries.join()})`
      await tx.execute(sql, [ms])
    })
  }

  /** How many are due after a time: at most COUNTED_MAX. */
  async countDue(afterMs: number): Promise<number> {
    const row = await this.#db.queryOne<{ count: number }>(
      `SELECT count(*) AS count FROM
         (SELECT 1 FROM heddle_event WHERE due_ms > 0 AND due_ms > $1${andOwned(this.#epoch)} LIMIT ${COUNTED_MAX}) AS due`,
      [afterMs],
    )
    return Number(row!.count)
  }

  /**
   * Positions between two, without events that have deliveries of their own: those are known, or wait for a group that is not here.
   * @param untilMs of what is due by then, milliseconds since the epoch
   * @returns at most PAGE_POSITIONS
   */
  async readPositions(after: number, before: number, untilMs: number): Promise<number[]> {
    const rows = await this.#db.query<{ seq: number }>(
      `SELECT seq FROM heddle_event WHERE seq > $1 AND seq < $2 AND due_ms <= $3 AND is_split = 0${andOwned(this.#epoch)}
       ORDER BY seq LIMIT ${PAGE_POSITIONS}`,
      [after, before, untilMs],
    )
    return rows.map(({ seq }) => Number(seq))
  }

  /** Makes a dead letter of a row that holds no event. */
  async bury(seq: number, letter: DeadRow): Promise<void> {
    await ownTransaction(this.#db, async (tx) => {
      await insertLetter(tx, letter)
      await tx.execute('DELETE FROM heddle_delivery WHERE seq = $1', [seq])
      await tx.execute(`DELETE FROM heddle_event WHERE seq = $1${andOwned(this.#epoch)}`, [seq])
    })
  }

  // ── groups, and what waits for them ───────────────────────────────────────

  async groups(): Promise<GroupRow[]> {
    const rows = await this.#db.query<{ event: string; grp: string; seen_ms: number }>(
      'SELECT event, grp, seen_ms FROM heddle_group',
    )
    // What is no time is one of now: a group that is known is not forgotten for it.
    return rows.map(({ event, grp, seen_ms }) => ({ event, group: grp, seenMs: numberOf(seen_ms, this.clock.nowMs()) }))
  }

  /** On a file: events that wait for a group, the oldest first. At most a page. */
  async readReturned({ event, group }: EventGroup, after: number, last: number): Promise<StoredRow[]> {
    return withDeliveries(this.#db, await this.#db.query<EventRow>(RETURNED, [group, after, last, event]))
  }

  /** On a server: positions of events that wait for a group, in their order. At most a page; they belong to this process from now on. */
  async takeReturned({ event, group }: EventGroup, after: number): Promise<number[]> {
    const { rows } = await this.#db.execute<{ seq: number }>(TAKE_RETURNED, [group, event, this.#epoch, after])
    return rows.map(({ seq }) => Number(seq)).sort((a, b) => a - b)
  }

  /** Groups that released events wait for, of some. */
  async released(groups: readonly string[]): Promise<EventGroup[]> {
    const rows = await this.#db.query<{ event: string; grp: string }>(
      `SELECT DISTINCT e.event, d.grp FROM heddle_delivery d JOIN heddle_event e ON e.seq = d.seq
       WHERE d.due_ms < 0 AND e.owner = ${WAITS_FOR_GROUP} AND d.grp IN (SELECT json_array_elements_text($1::json))`,
      [JSON.stringify(groups)],
    )
    return rows.map(({ event, grp }) => ({ event, group: grp }))
  }

  /** How many released events wait for each group. */
  async countReleased(): Promise<(EventGroup & { count: number })[]> {
    const rows = await this.#db.query<{ event: string; grp: string; count: number }>(
      `SELECT e.event, d.grp, count(*) AS count FROM heddle_delivery d JOIN heddle_event e ON e.seq = d.seq
       WHERE d.due_ms < 0 AND e.owner = ${WAITS_FOR_GROUP} GROUP BY e.event, d.grp`,
    )
    return rows.map(({ event, grp, count }) => ({ event, group: grp, count: Number(count) }))
  }

  /** The group is not known any more. */
  async deleteGroup({ event, group }: EventGroup): Promise<void> {
    await this.#db.execute('DELETE FROM heddle_group WHERE event = $1 AND grp = $2', [event, group])
  }

  /** Deletes a page of what waits for a group. @returns how many events that were; 0: nothing waits any more */
  async deleteWaiting({ event, group }: EventGroup): Promise<number> {
    const waiting = [group, 0, Number.MAX_SAFE_INTEGER, event]
    const rows = await this.#db.query<{ seq: number }>(`${WAITING} ${IN_ORDER}`, waiting)
    if (rows.length === 0) return 0
    const list = rows.map(({ seq }) => Number(seq)).join(', ')
    await ownTransaction(this.#db, async (tx) => {
      // Locks them: of two processes that delete the last two deliveries of an event one would not see what the other does, and it would stay.
      await tx.execute(`UPDATE heddle_event SET is_split = is_split WHERE seq IN (${list})`, [])
      await tx.execute(`DELETE FROM heddle_delivery WHERE grp = $1 AND due_ms < 0 AND seq IN (${list})`, [group])
      await tx.execute(
        `DELETE FROM heddle_event WHERE seq IN (${list}) AND is_split = 1
         AND NOT EXISTS (SELECT 1 FROM heddle_delivery WHERE heddle_delivery.seq = heddle_event.seq)`,
        [],
      )
    })
    return rows.length
  }

  // ── letters ───────────────────────────────────────────────────────────────

  /** @param onMalformed told of letters whose key is none: nothing waits for them */
  async openLetters(onMalformed: (id: string, why: string) => void): Promise<OpenLetter[]> {
    const rows = await this.#db.query<{
      id: string
      event: string
      grp: string
      key: string | null
      is_parked: number
      replay: string
      replay_seq: number
      replayed_ms: number
    }>(
      `SELECT id, event, grp, key, is_parked, replay, replay_seq, replayed_ms FROM heddle_dead
       WHERE replay = 'running' OR (is_parked = 1 AND replay = '')`,
    )
    return rows.flatMap(({ id, event, grp, key, is_parked, replay, replay_seq, replayed_ms }) => {
      try {
        const place = { event, group: grp, key: keyOf(key) }
        const seq = replay === 'running' ? Number(replay_seq) : 0
        return { id, place, isParked: Number(is_parked) === 1, seq, replayedMs: Number(replayed_ms) }
      } catch (error) {
        onMalformed(id, messageOf(error))
        return []
      }
    })
  }
}

const BEGUN: readonly number[] = [DUE_BEGUN, DUE_BEGUN_WITH_GROUP]

/** Adds what is left of their deliveries. */
export async function withDeliveries(db: LogDatabase, rows: readonly EventRow[]): Promise<StoredRow[]> {
  const split = rows.filter(({ is_split }) => Number(is_split) === 1)
  if (split.length === 0) return rows.map((row) => ({ row, left: null }))
  const rowsOf = await db.query<{
    seq: number
    grp: string
    attempt: number
    deaths: number
    due_ms: number
    error: string
  }>('SELECT seq, grp, attempt, deaths, due_ms, error FROM heddle_delivery WHERE seq BETWEEN $1 AND $2', [
    Math.min(...split.map(({ seq }) => Number(seq))),
    Math.max(...split.map(({ seq }) => Number(seq))),
  ])
  const deliveries = rowsOf.map(({ seq, grp, attempt, deaths, due_ms, error }) => ({
    seq: Number(seq),
    group: grp,
    attempt: numberOf(attempt, 1),
    deaths: numberOf(deaths, 0),
    dueMs: numberOf(due_ms, 0),
    error,
    ...(BEGUN.includes(Number(due_ms)) ? { isBegun: true } : {}),
  }))
  return rows.map((row) => ({
    row,
    left: Number(row.is_split) === 1 ? deliveries.filter(({ seq }) => seq === Number(row.seq)) : null,
  }))
}

/** A file takes any value in any column. */
const numberOf = (value: number, otherwise: number): number =>
  Number.isFinite(Number(value)) ? Number(value) : otherwise

/** When an event was stored; 0 for a row that holds none. */
function storedAtMs(row: EventRow): number {
  try {
    return frameOf(row).timestampMs
  } catch {
    return 0
  }
}
