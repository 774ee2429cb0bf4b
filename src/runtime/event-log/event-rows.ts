// Events as rows, and the statements that write them.
import type { Queryable, SqlValue } from '../../contracts/db.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { dueMsOf, type EventColumns, envelopeOf, keyColumnOf } from '../event-store/event-columns.ts'

/** Columns of a new row, in the order of `pushRow`. */
export const EVENT_COLUMNS = ['seq', 'id', 'event', 'envelope', 'payload', 'key', 'due_ms', 'expires_ms'] as const

/** A row of `heddle_event`. */
export interface EventRow extends EventColumns {
  due_ms: number
  expires_ms: number
  is_split: number
  /** Processes that have ended without order while they had it; counted on a server, and read with what they have left. */
  recovered?: number
}

/** Adds the columns of a new row. @param frame its payload is text */
export function pushRow(params: SqlValue[], frame: EventFrame): void {
  const { timestampMs, delayMs, ttlMs, key } = frame
  params.push(
    frame.seq,
    frame.id,
    frame.event,
    envelopeOf(frame),
    frame.payload,
    keyColumnOf(key),
    dueMsOf(frame),
    ttlMs === 0 ? 0 : Math.ceil(timestampMs + delayMs + ttlMs),
  )
}

/**
 * Who may write what on a server that several processes share. Each has a number, its epoch; 0 where there is but one process, on a file.
 *
 * A process that stood still may wake after another one has taken over its events. So every statement that stores something asks whether the
 * process is still the owner, and keeps its row from being locked by others until the commit: the one that takes over locks the row, and knows then
 * that nothing is under way. No advisory lock, which a role without any right could take.
 */

/** The owner of an event that belongs to no process: it is there for the one that delivers its key, or, without a key, for any. */
export const NO_PROCESS = 0
/** The owner of an event that waits for a group which the process that had it lacks: whoever has the group takes it. */
export const WAITS_FOR_GROUP = -1

/** An expression that has the epoch as its value, or null when the process is not the owner any more. */
const ownerExpression = (epoch: number): string =>
  `(SELECT epoch FROM heddle_process WHERE epoch = ${epoch} AND adopter IS NULL FOR KEY SHARE)`

/**
 * Waits for everything that a process ($1) is storing, whose `adopter` is set. The row is locked for good before it is written, so a transaction that
 * still sees it as it was cannot lock it any more, either.
 */
export const AWAIT_INSERTS = `
  WITH locked AS (SELECT epoch FROM heddle_process WHERE epoch = $1 FOR UPDATE)
  UPDATE heddle_process AS ended SET is_clean = ended.is_clean FROM locked WHERE ended.epoch = locked.epoch`

/** True for the error of an INSERT that found that the process is not the owner any more. */
export const isTakenOver = (error: unknown): boolean =>
  messageOf(error).includes('column "owner" of relation "heddle_event"')

export const TAKEN_OVER = 'Another process has taken over the events of this one'

/** The end of a condition that only the process's own rows fulfil. */
export const andOwned = (epoch: number): string => (epoch === 0 ? '' : ` AND owner = ${epoch}`)

/** For statements that change more than rows of events. @throws EVENT_BUS_UNAVAILABLE when the process is not the owner any more */
export async function requireOwner(tx: Queryable, epoch: number): Promise<void> {
  if (epoch === 0) return
  const row = await tx.queryOne<{ owner: number | null }>(`SELECT ${ownerExpression(epoch)} AS owner`)
  if (row?.owner != null) return
  throw new HeddleError('EVENT_BUS_UNAVAILABLE', TAKEN_OVER)
}

/** The INSERTs on a server: few sizes, so that each is prepared once. */
export interface InsertTexts {
  /** How many rows the next INSERT has, of so many that are left. With more than are left, it is filled up with rows of nulls. */
  sizeFor(left: number): number
  textOf(rows: number): string
}

const COLUMNS = EVENT_COLUMNS.join(', ')
/** Types of the columns on PostgreSQL. */
const SERVER_TYPES = ['bigint', 'text', 'text', 'text', 'text', 'text', 'bigint', 'bigint'] as const

/** Rows of one INSERT at most. */
export const SERVER_MAX_ROWS = 256

/**
 * Where events go on a server. `free`: those with a key belong to no process. `kept`: this process delivers them. `first`: it delivers them, and of
 * their keys before all others.
 */
export type Placing = 'free' | 'kept' | 'first'

const SERVER_SIZES = [1, 4, 16, 64, 128, SERVER_MAX_ROWS]

/**
 * Each statement is a way there and back: as few as can be.
 * The column `owner` takes no null, so nothing is stored for a process that is not the owner any more.
 */
export function serverInserts(epoch: number, placing: Placing): InsertTexts {
  const own = ownerExpression(epoch)
  const owner = placing === 'free' ? `CASE WHEN key IS NULL THEN ${own} ELSE ${own} * ${NO_PROCESS} END` : own
  // A query without a reference to the row is run once. The server alone knows what was stored before: a number that is drawn sooner may be too low.
  const placement = `${owner}, ${placing === 'first' ? 0 : "(SELECT nextval('heddle_order'))"}`
  const texts = textsOf(
    SERVER_SIZES,
    (rows) =>
      `INSERT INTO heddle_event (owner, ord, ${COLUMNS}) SELECT ${placement}, row.*
       FROM (VALUES ${rows}) AS row (${COLUMNS}) WHERE seq IS NOT NULL`,
    SERVER_TYPES,
  )
  return {
    sizeFor: (left) => SERVER_SIZES.find((size) => size >= left) ?? SERVER_MAX_ROWS,
    textOf: (rows) => texts.get(rows)!,
  }
}

/** @param types of the columns, for the first row: a list of values has no table to take them from */
function textsOf(
  sizes: readonly number[],
  statementOf: (rows: string) => string,
  types: readonly string[],
): Map<number, string> {
  const width = EVENT_COLUMNS.length
  const placeOf = (row: number, column: number): string =>
    `$${row * width + column + 1}${row === 0 ? `::${types[column]}` : ''}`
  const rowOf = (row: number): string => `(${EVENT_COLUMNS.map((_, column) => placeOf(row, column)).join(', ')})`
  return new Map(
    sizes.map((size) => [size, statementOf(Array.from({ length: size }, (_, row) => rowOf(row)).join(', '))]),
  )
}
