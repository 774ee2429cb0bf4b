import type { EventRow } from '../../runtime/event-log/event-rows.ts'
import type { LogDatabase } from '../../runtime/event-log/log-database.ts'

/** Rows of one page: the primary reads them between two turns of its loop. */
export const PAGE_ROWS = 128
const EVENT = 'SELECT seq, id, event, envelope, payload, key, due_ms, expires_ms, is_split, recovered FROM heddle_event'
const AFTER = `${EVENT} WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT ${PAGE_ROWS}`
const LISTED = `${EVENT} WHERE seq IN (${Array.from({ length: PAGE_ROWS }, (_, n) => `$${n + 1}`).join(', ')}) ORDER BY seq`

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
}

/** Events after one position, up to another, the oldest first: at most a page. */
export async function readAfter(db: LogDatabase, after: number, last: number): Promise<StoredRow[]> {
  return withDeliveries(db, await db.query<EventRow>(AFTER, [after, last]))
}

/** @param positions at most a page */
export async function readListed(db: LogDatabase, positions: readonly number[]): Promise<StoredRow[]> {
  const list = [...positions]
  while (list.length < PAGE_ROWS) list.push(list.at(-1)!)
  return withDeliveries(db, await db.query<EventRow>(LISTED, list))
}

async function withDeliveries(db: LogDatabase, rows: readonly EventRow[]): Promise<StoredRow[]> {
  const split = rows.filter(({ is_split }) => Number(is_split) === 1)
  if (split.length === 0) return rows.map((row) => ({ row, left: null }))
  const deliveries = await db.query<DeliveryRow>(
    'SELECT seq, grp, attempt, deaths, due_ms, error FROM heddle_delivery WHERE seq BETWEEN $1 AND $2',
    [Number(split[0]!.seq), Number(split.at(-1)!.seq)],
  )
  return rows.map((row) => ({
    row,
    left: Number(row.is_split) === 1 ? deliveries.filter(({ seq }) => Number(seq) === Number(row.seq)) : null,
  }))
}

/** The last position that is taken; 0: none. */
export async function lastPosition(db: LogDatabase): Promise<number> {
  const row = await db.queryOne<{ last: number | null }>('SELECT max(seq) AS last FROM heddle_event')
  return Number(row?.last ?? 0)
}

export async function countEvents(db: LogDatabase): Promise<number> {
  const row = await db.queryOne<{ events: number }>('SELECT count(*) AS events FROM heddle_event')
  return Number(row?.events ?? 0)
}
