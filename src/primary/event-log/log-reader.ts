import { timeOrderedId } from '../../core/causality/ids.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import { andOwned, type EventRow, keyOf, WAITS_FOR_GROUP } from '../../runtime/event-log/event-rows.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'
import type { GroupRow, WaitingDelivery } from '../../transport/log-changes.ts'

/** Rows of one page: the primary reads them between two turns of its loop. */
export const PAGE_ROWS = 128
const EVENT = 'SELECT seq, id, event, envelope, payload, key, due_ms, expires_ms, is_split FROM heddle_event'
const AFTER = `${EVENT} WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT ${PAGE_ROWS}`
const LISTED = `${EVENT} WHERE seq IN (${Array.from({ length: PAGE_ROWS }, (_, n) => `$${n + 1}`).join(', ')})`

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
}

/** Events after one position, up to another, the oldest first: at most a page. */
export async function readAfter(db: LogDatabase, after: number, last: number): Promise<StoredRow[]> {
  return withDeliveries(db, await db.query<EventRow>(AFTER, [after, last]))
}

/** What belongs to another process is left out. @param positions at most a page */
export async function readListed({ database, memory }: EventLog, positions: readonly number[]): Promise<StoredRow[]> {
  const list = [...positions]
  while (list.length < PAGE_ROWS) list.push(list.at(-1)!)
  const rows = await database.query<EventRow>(`${LISTED}${andOwned(memory.epoch)} ORDER BY seq`, list)
  return withDeliveries(database, rows)
}

/** The same in the order in which they are listed: that of their times, or of their arrival. */
export async function readInOrder(log: EventLog, positions: readonly number[]): Promise<StoredRow[]> {
  const rows = await readListed(log, positions)
  const places = new Map(positions.map((seq, n) => [seq, n]))
  const placeOf = ({ row }: StoredRow): number => places.get(Number(row.seq)) ?? 0
  return rows.sort((a, b) => placeOf(a) - placeOf(b))
}

/** Where several processes share the log: positions in the order in which their events were committed. What is gone is left out. */
export async function inOrderOfCommits(db: LogDatabase, positions: readonly number[]): Promise<number[]> {
  if (positions.length < 2) return [...positions]
  const rows = await db.query<{ seq: number }>(
    'SELECT seq FROM heddle_event WHERE seq = ANY($1::bigint[]) ORDER BY ord, seq',
    [`{${positions.join(',')}}`],
  )
  return rows.map(({ seq }) => Number(seq))
}

/** A group that is here again. */
interface ReturnedGroup {
  event: string
  group: string
  after: number
  last: number
  /** Of this process; 0 where it has the log alone. */
  epoch: number
}

const WAITING = `SELECT d.seq FROM heddle_delivery d JOIN heddle_event e ON e.seq = d.seq
  WHERE d.grp = $1 AND d.due_ms < 0 AND d.seq > $2 AND d.seq <= $3 AND e.event = $4`
const IN_ORDER = `ORDER BY d.seq LIMIT ${PAGE_ROWS}`
const RETURNED = `${EVENT} WHERE seq IN (${WAITING} ${IN_ORDER}) ORDER BY seq`
/** Takes them over, while this process is what it takes itself for. */
const TAKE_RETURNED = `UPDATE heddle_event SET owner = $3
  WHERE seq IN (SELECT d.seq FROM heddle_delivery d JOIN heddle_event e ON e.seq = d.seq
      WHERE d.grp = $1 AND d.due_ms < 0 AND e.event = $2 AND e.owner = ${WAITS_FOR_GROUP}
      ORDER BY e.ord, e.seq LIMIT ${PAGE_ROWS} FOR UPDATE OF e SKIP LOCKED)
    AND EXISTS (SELECT 1 FROM heddle_process WHERE epoch = $3 AND adopter IS NULL)
  RETURNING seq, ord, id, event, envelope, payload, key, due_ms, expires_ms, is_split`

/** Events that wait for a group, the oldest first: at most a page. On a server they belong to this process from now on. */
export async function readReturned(db: LogDatabase, returned: ReturnedGroup): Promise<StoredRow[]> {
  const { event, group, after, last, epoch } = returned
  if (epoch === 0) return withDeliveries(db, await db.query<EventRow>(RETURNED, [group, after, last, event]))
  const { rows } = await db.execute<EventRow & { ord: number }>(TAKE_RETURNED, [group, event, epoch])
  rows.sort((a, b) => Number(a.ord) - Number(b.ord) || Number(a.seq) - Number(b.seq))
  return withDeliveries(db, rows)
}

export async function readGroups(db: LogDatabase): Promise<GroupRow[]> {
  const rows = await db.query<{ event: string; grp: string; seen_ms: number }>(
    'SELECT event, grp, seen_ms FROM heddle_group',
  )
  // What is no time is one of now: a group that is known is not forgotten for it.
  return rows.map(({ event, grp, seen_ms }) => ({ event, group: grp, seenMs: numberOf(seen_ms, Date.now()) }))
}

/** Groups that released events wait for, of some. */
export async function readReleased(
  db: LogDatabase,
  groups: readonly string[],
): Promise<{ event: string; group: string }[]> {
  const rows = await db.query<{ event: string; grp: string }>(
    `SELECT DISTINCT e.event, d.grp FROM heddle_delivery d JOIN heddle_event e ON e.seq = d.seq
     WHERE d.due_ms < 0 AND e.owner = ${WAITS_FOR_GROUP} AND d.grp IN (SELECT json_array_elements_text($1::json))`,
    [JSON.stringify(groups)],
  )
  return rows.map(({ event, grp }) => ({ event, group: grp }))
}

/** How many released events wait for each group. */
export async function countReleased(db: LogDatabase): Promise<{ event: string; group: string; count: number }[]> {
  const rows = await db.query<{ event: string; grp: string; count: number }>(
    `SELECT e.event, d.grp, count(*) AS count FROM heddle_delivery d JOIN heddle_event e ON e.seq = d.seq
     WHERE d.due_ms < 0 AND e.owner = ${WAITS_FOR_GROUP} GROUP BY e.event, d.grp`,
  )
  return rows.map(({ event, grp, count }) => ({ event, group: grp, count: Number(count) }))
}

/** Forgets a page of what waits for a group. @returns how many events that were; 0: nothing waits any more */
export async function forgetWaiting(db: LogDatabase, event: string, group: string): Promise<number> {
  const rows = await db.query<{ seq: number }>(`${WAITING} ${IN_ORDER}`, [group, 0, Number.MAX_SAFE_INTEGER, event])
  if (rows.length === 0) return 0
  const list = rows.map(({ seq }) => Number(seq)).join(', ')
  await db.transaction(async (tx) => {
    await tx.execute(`DELETE FROM heddle_delivery WHERE grp = $1 AND due_ms < 0 AND seq IN (${list})`, [group])
    await tx.execute(
      `DELETE FROM heddle_event WHERE seq IN (${list}) AND is_split = 1
       AND NOT EXISTS (SELECT 1 FROM heddle_delivery WHERE heddle_delivery.seq = heddle_event.seq)`,
      [],
    )
  })
  return rows.length
}

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
  }))
  return rows.map((row) => ({
    row,
    left: Number(row.is_split) === 1 ? deliveries.filter(({ seq }) => seq === Number(row.seq)) : null,
  }))
}

/** A file takes any value in any column. */
const numberOf = (value: number, otherwise: number): number =>
  Number.isFinite(Number(value)) ? Number(value) : otherwise

/** The first and the last position that are taken. Without an event `first` is one above `last`. */
export async function positions(db: LogDatabase): Promise<{ first: number; last: number }> {
  const row = await db.queryOne<{ first: number | null; last: number | null }>(
    'SELECT (SELECT min(seq) FROM heddle_event) AS first, (SELECT max(seq) FROM heddle_event) AS last',
  )
  return { first: Number(row?.first ?? 1), last: Number(row?.last ?? 0) }
}

/** A letter that other events wait for, or that is being replayed. */
export interface OpenLetter {
  id: string
  place: { event: string; group: string; key: string | null }
  isParked: boolean
  /** Position of the event that it has become; 0: it waits. */
  seq: number
}

/** @param onMalformed told of letters whose key is none: nothing waits for them */
export async function readOpenLetters(
  db: LogDatabase,
  onMalformed: (id: string, why: string) => void,
): Promise<OpenLetter[]> {
  const rows = await db.query<{
    id: string
    event: string
    grp: string
    key: string | null
    is_parked: number
    replay: string
    replay_seq: number
  }>(
    `SELECT id, event, grp, key, is_parked, replay, replay_seq FROM heddle_dead
     WHERE replay = 'running' OR (is_parked = 1 AND replay = '')`,
  )
  return rows.flatMap(({ id, event, grp, key, is_parked, replay, replay_seq }) => {
    try {
      const place = { event, group: grp, key: keyOf(key) }
      return { id, place, isParked: Number(is_parked) === 1, seq: replay === 'running' ? Number(replay_seq) : 0 }
    } catch (error) {
      onMalformed(id, messageOf(error))
      return []
    }
  })
}

/**
 * Notes that a process uses the log.
 * @param last the last position that is taken
 * @returns up to where there were events each time that a process ended without order
 */
export async function noteStart(db: LogDatabase, first: number, last: number): Promise<number[]> {
  return db.transaction(async (tx) => {
    const notes = await tx.query<{ name: string; value: number }>('SELECT name, value FROM heddle_log')
    const isUnclean = notes.some(({ name }) => name === IN_USE)
    const ends = notes.filter(({ name }) => name.startsWith(UNCLEAN_END)).map(({ value }) => Number(value))
    if (isUnclean && last > 0) {
      await tx.execute('INSERT INTO heddle_log (name, value) VALUES ($1, $2)', [
        `${UNCLEAN_END}${timeOrderedId()}`,
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

const IN_USE = 'in_use'
const UNCLEAN_END = 'unclean_end '

/** Notes that the process has ended in order: what is left has nothing to do with it. */
export async function noteEnd(db: LogDatabase): Promise<void> {
  await db.execute('DELETE FROM heddle_log WHERE name = $1 OR name LIKE $2', [IN_USE, `${UNCLEAN_END}%`])
}
