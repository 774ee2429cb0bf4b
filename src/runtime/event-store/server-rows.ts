// The statements that insert events on PostgreSQL.
import type { SqlValue } from '../../contracts/db.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { BROKER, type Recipients } from './delivery-rows.ts'
import { dueMsOf, envelopeOf, expiresMsOf, isPlain, keyColumnOf } from './event-columns.ts'
import { arrayOf } from './server-changes.ts'
import { IS_DRAWING, MEMBER_THREADS, slotOf } from './server-tables.ts'
import { textArray } from './text-array.ts'

/** Maximum number of events of one statement. */
export const SERVER_MAX_ROWS = 256

/** Returns the group of rows stored by a member before its groups are known. */
export const unassignedOf = (member: number): number => BROKER - member

/** Returns the number of a member's thread in the column `thread`. */
export const threadOf = (member: number, thread: number): number => member * MEMBER_THREADS + thread

/**
 * $1 is the thread, then a list for each column; for rows without subscribed groups the last two parameters are the group and the `place`.
 * `pg_current_xact_id()` gives the transaction its id before it draws a `seq`: the horizon relies on that.
 */
function textOf(isForGroups: boolean, isPlainText: boolean): string {
  const lists = ['text', 'text', 'text', 'text', ...(isPlainText ? [] : ['text', 'bigint', 'bigint'])]
  const columns = ['id', 'event', 'envelope', 'payload', ...(isPlainText ? [] : ['key', 'due_ms', 'expires_ms'])]
  const params = lists.map((type, at) => `$${2 + at}::${type}[]`)
  const group = isForGroups ? 'g.id' : `$${2 + lists.length}::integer`
  const key = isPlainText ? 'NULL::text' : 'e.key'
  const slot = isForGroups ? `CASE WHEN g.member > 0 THEN 0 ELSE ${slotOf(key)} END` : slotOf(key)
  const rest = isPlainText ? 'NULL, 0, 0' : 'e.key, e.due_ms, e.expires_ms'
  const join = isForGroups ? ' JOIN heddle_group AS g ON g.event = e.event' : ''
  const place = isForGroups ? 'NULL' : `$${3 + lists.length}::bigint`
  return `INSERT INTO heddle_delivery (grp, place, slot, thread, event_id, event, envelope, payload, key, due_ms, expires_ms)
    SELECT ${group}, ${place}, ${slot}, $1::bigint, e.id, e.event, e.envelope, e.payload, ${rest}
    FROM unnest(${params.join(', ')}) WITH ORDINALITY AS e (${columns.join(', ')}, n)${join}
    WHERE ${IS_DRAWING} ORDER BY e.n`
}

const TEXTS = [false, true].map((isForGroups) => [false, true].map((isPlainText) => textOf(isForGroups, isPlainText)))

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
  const isPlainText = frames.every(isPlain)
  const params: SqlValue[] = [
    threadOf(member, thread),
    textArray(frames.map(({ id }) => id)),
    textArray(frames.map(({ event }) => event)),
    textArray(frames.map(envelopeOf)),
    textArray(frames.map(({ payload }) => payload)),
  ]
  if (!isPlainText) {
    const keys = textArray(frames.map(({ key }) => keyColumnOf(key)))
    params.push(keys, arrayOf(frames.map(dueMsOf)), arrayOf(frames.map(expiresMsOf)))
  }
  if (recipients === 'later') params.push(unassignedOf(member), subscriptions)
  else if (recipients === 'broker') params.push(BROKER, null)
  return { sql: TEXTS[Number(recipients === 'groups')]![Number(isPlainText)]!, params }
}
