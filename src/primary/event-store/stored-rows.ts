// Rows of `heddle_delivery` as deliveries.
import { messageOf } from '../../core/errors/description.ts'
import { type EventColumns, frameOf } from '../../runtime/event-store/event-columns.ts'
import { uniqueIn } from '../../runtime/event-store/unique-rows.ts'
import { bytesOf, type UniqueEvent } from '../../transport/frames/event-frame.ts'
import type { OwnedSlot } from './slots.ts'
import type { MalformedRow, StoredDelivery } from './store.ts'

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

/** A row as it is read. */
export interface DeliveryRow extends EventColumns {
  /** Null if equal to `seq`. */
  place: number | null
  thread: number
  /** See TRIED. */
  tried: string | null
}

const RARE = ['attempt', 'deaths', 'crashes', 'expires_ms', 'begun', 'retry_ms', 'error', 'uniq', 'share']
const IS_NEW =
  "attempt = 1 AND deaths = 0 AND crashes = 0 AND expires_ms = 0 AND begun = 0 AND retry_ms = 0 AND error = '' AND uniq IS NULL"

/**
 * Columns that change after the publication, as a JSON array. Of a new row the share alone, or null: each column that is read costs, and most rows
 * are new. A file takes any value in any column, JSON takes only text.
 */
export const TRIED = {
  sqlite: `CASE WHEN ${IS_NEW} THEN share ELSE json_array(${RARE.map((column) => `CAST(${column} AS text)`).join(', ')}) END`,
  postgres: `CASE WHEN ${IS_NEW} THEN share ELSE CAST(json_build_array(${RARE.join(', ')}) AS text) END`,
} as const

type Tried = Pick<StoredDelivery, 'expiresMs' | 'attempt' | 'deaths' | 'error' | 'isBegun' | 'retryMs' | 'crashes'> & {
  unique: UniqueEvent | null
  share: string
}

const NEW: Tried = {
  expiresMs: 0,
  attempt: 1,
  deaths: 0,
  error: '',
  isBegun: false,
  retryMs: 0,
  crashes: 0,
  unique: null,
  share: '',
}

function triedOf(column: string | null): Tried {
  if (column === null) return NEW
  if (!column.startsWith('[')) return { ...NEW, share: column }
  const [attempt, deaths, crashes, expiresMs, begun, retryMs, error, unique, share] = parseJson(column)
  return {
    expiresMs: numberOf(expiresMs, 0),
    attempt: numberOf(attempt, 1),
    deaths: numberOf(deaths, 0),
    error: String(error),
    isBegun: Number(begun) === 1,
    retryMs: numberOf(retryMs, 0),
    crashes: numberOf(crashes, 0),
    unique: uniqueIn(unique),
    share: share ?? '',
  }
}

/**
 * One object for each row, always with the same fields: thousands are made a second.
 * @param slot the last three are those of a server: see StoredDelivery
 */
export function deliveryOf(
  row: DeliveryRow,
  slot?: OwnedSlot,
  replayedMs?: number,
  waits?: boolean,
): StoredDelivery | MalformedRow {
  const seq = Number(row.seq)
  const place = Number(row.place ?? seq)
  try {
    const { expiresMs, attempt, deaths, error, isBegun, retryMs, crashes, unique, share } = triedOf(row.tried)
    const event = frameOf(row)
    event.payload = bytesOf(event.payload)
    event.shares = share
    event.unique = unique
    const thread = Number(row.thread)
    return {
      seq,
      place,
      thread,
      event,
      expiresMs,
      attempt,
      deaths,
      error,
      isBegun,
      retryMs,
      crashes,
      slot,
      replayedMs,
      waits,
    }
  } catch (error) {
    return { seq, place, fault: messageOf(error) }
  }
}

function numberOf(value: unknown, otherwise: number): number {
  const number = Number(value)
  return Number.isFinite(number) ? number : otherwise
}
