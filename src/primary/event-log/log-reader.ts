import { timeOrderedId } from '../../core/causality/ids.ts'
import type { EventLog } from '../../runtime/event-log/event-log.ts'
import { type EventRow, keyOf } from '../../runtime/event-log/event-rows.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'
import { andOwned } from '../../runtime/event-log/ownership.ts'

/** Rows of one page: the primary reads them between two turns of its loop. */
export const PAGE_ROWS = 128
const EVENT = 'SELECT seq, id, event, envelope, payload, key, due_ms, expires_ms, is_split FROM heddle_event'
const AFTER = `${EVENT} WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT ${PAGE_ROWS}`
const LISTED = `${EVENT} WHERE seq IN (${Array.from({ length: PAGE_ROWS }, (_, n) => `$${n + 1}`).join(', ')})`

/** A row of `heddle_delivery`. */
export interface DeliveryRow {
  seq: number
  grp: string
  attempt: number
  deaths: number
  due_ms: number
  error: string
}

/** An event as it is stored. */
export interface StoredRow {
  row: EventRow
  /** Its deliveries that are left; null: all. */
  left: DeliveryRow[] | null
  /** Slot of its key, where several processes share the log. */
  slot?: number
  /** It was left by another process that had too many. */
  isTaken?: boolean
  /** The hub has recorded it already. */
  isRecorded?: boolean
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

/** Adds what is left of their deliveries. */
export async function withDeliveries(db: LogDatabase, rows: readonly EventRow[]): Promise<StoredRow[]> {
  const split = rows.filter(({ is_split }) => Number(is_split) === 1)
  if (split.length === 0) return rows.map((row) => ({ row, left: null }))
  const deliveries = await db.query<DeliveryRow>(
    'SELECT seq, grp, attempt, deaths, due_ms, error FROM heddle_delivery WHERE seq BETWEEN $1 AND $2',
    [Math.min(...split.map(({ seq }) => Number(seq))), Math.max(...split.map(({ seq }) => Number(seq)))],
  )
  return rows.map((row) => ({
    row,
    left: Number(row.is_split) === 1 ? deliveries.filter(({ seq }) => Number(seq) === Number(row.seq)) : null,
  }))
}

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

export async function readOpenLetters(db: LogDatabase): Promise<OpenLetter[]> {
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
  return rows.map(({ id, event, grp, key, is_parked, replay, replay_seq }) => ({
    id,
    place: { event, group: grp, key: keyOf(key) },
    isParked: Number(is_parked) === 1,
    seq: replay === 'running' ? Number(replay_seq) : 0,
  }))
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
