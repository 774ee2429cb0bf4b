// The statements that insert events on PostgreSQL.
import type { SqlValue } from '../../contracts/db.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { BROKER, type Recipients } from './delivery-rows.ts'
import { isPlain, pushColumns } from './event-columns.ts'
import { IS_DRAWING, MEMBER_THREADS, slotOf } from './server-tables.ts'

/** Maximum number of events of one statement, and the sizes of statements: few, so that each is prepared once. The rest is filled with nulls. */
export const SERVER_MAX_ROWS = 256
const SIZES = [1, 4, 16, 64, 128, SERVER_MAX_ROWS]

const COLUMNS = ['id', 'event', 'envelope', 'payload', 'key', 'due_ms', 'expires_ms'] as const
/** Number of columns for events without key, delay and time to live: most are. */
const PLAIN_COLUMNS = 4
/** Casts of the first row: a list of values has no table to take types from. */
const TYPES = ['text', 'text', 'text', 'text', 'text', 'bigint', 'bigint'] as const

/** Returns the group of rows stored by a member before its groups are known. */
export const unassignedOf = (member: number): number => BROKER - member

/** Returns the number of a member's thread in the column `thread`. */
export const threadOf = (member: number, thread: number): number => member * MEMBER_THREADS + thread

/** Number of parameters before the events: the thread; without subscribed groups also the group, and the number of subscriptions to be stored first. */
const HEAD = { groups: 1, others: 3 } as const

/**
 * $1 is the thread; for rows without subscribed groups $2 is the group and $3 the `place`.
 * `pg_current_xact_id()` gives the transaction its id before it draws a `seq`: the horizon relies on that.
 */
function textOf(isForGroups: boolean, size: number, isPlainText: boolean): string {
  const first = 1 + (isForGroups ? HEAD.groups : HEAD.others)
  const names = isPlainText ? COLUMNS.slice(0, PLAIN_COLUMNS) : COLUMNS
  const rowOf = (row: number): string => {
    const columns = names.map(
      (_, column) => `$${first + row * names.length + column}${row === 0 ? `::${TYPES[column]}` : ''}`,
    )
    return `(${row}, ${columns.join(', ')})`
  }
  const rows = Array.from({ length: size }, (_, row) => rowOf(row)).join(', ')
  const group = isForGroups ? 'g.id' : '$2::integer'
  const key = isPlainText ? 'NULL::text' : 'e.key'
  const slot = isForGroups ? `CASE WHEN g.member > 0 THEN 0 ELSE ${slotOf(key)} END` : slotOf(key)
  const rest = isPlainText ? 'NULL, 0, 0' : 'e.key, e.due_ms, e.expires_ms'
  const join = isForGroups ? ' JOIN heddle_group AS g ON g.event = e.event' : ''
  const place = isForGroups ? 'NULL' : '$3::bigint'
  return `INSERT INTO heddle_delivery (grp, place, slot, thread, event_id, event, envelope, payload, key, due_ms, expires_ms)
    SELECT ${group}, ${place}, ${slot}, $1::bigint, e.id, e.event, e.envelope, e.payload, ${rest}
    FROM (VALUES ${rows}) AS e (n, ${names.join(', ')})${join}
    WHERE e.event IS NOT NULL AND ${IS_DRAWING} ORDER BY e.n`
}

const texts = new Map<string, string>()

function cachedTextOf(isForGroups: boolean, size: number, isPlainText: boolean): string {
  const name = `${isForGroups} ${size} ${isPlainText}`
  let text = texts.get(name)
  if (text === undefined) {
    text = textOf(isForGroups, size, isPlainText)
    texts.set(name, text)
  }
  return text
}

/**
 * The statement for inserting events: one row for each recipient, in the order of the events.
 * @param frames at most SERVER_MAX_ROWS; their payloads are text
 * @param thread number of the publishing thread in its process
 * @param subscriptions number of subscriptions after the boot: rows for later wait until these have their groups stored
 */
export function serverInsertStatement(
  recipients: Recipients,
  frames: readonly EventFrame[],
  member: number,
  thread: number,
  subscriptions = 0,
): { sql: string; params: SqlValue[] } {
  const size = SIZES.find((each) => each >= frames.length) ?? SERVER_MAX_ROWS
  const params: SqlValue[] = [threadOf(member, thread)]
  if (recipients === 'later') params.push(unassignedOf(member), subscriptions)
  else if (recipients === 'broker') params.push(BROKER, null)
  const isPlainText = frames.every(isPlain)
  const length = params.length + size * (isPlainText ? PLAIN_COLUMNS : COLUMNS.length)
  for (const frame of frames) pushColumns(params, frame, isPlainText)
  while (params.length < length) params.push(null)
  return { sql: cachedTextOf(recipients === 'groups', size, isPlainText), params }
}
