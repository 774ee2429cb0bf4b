// The statements that insert events on PostgreSQL.
import type { SqlValue } from '../../contracts/db.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { BROKER, type Recipients } from './delivery-rows.ts'
import {
  dueMsOf,
  envelopeOf,
  expiresMsOf,
  formOf,
  keyColumnOf,
  type RowForm,
  shareSql,
  sharesColumnOf,
} from './event-columns.ts'
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
 * $1 is the thread, then a list for each column, of a single event its value: a list costs the server a table. For rows without subscribed groups
 * the last two parameters are the group and the `place`.
 * `pg_current_xact_id()` gives the transaction its id before it draws a `seq`: the horizon relies on that.
 */
function textOf(isForGroups: boolean, form: RowForm, isSingle: boolean): string {
  const isPlainText = form === 'plain'
  const isShared = form === 'shared'
  const types = [
    'text',
    'text',
    'text',
    'text',
    ...(isPlainText ? [] : ['text', 'bigint', 'bigint']),
    ...(isShared ? ['text'] : []),
  ]
  const columns = [
    'id',
    'event',
    'envelope',
    'payload',
    ...(isPlainText ? [] : ['key', 'due_ms', 'expires_ms']),
    ...(isShared ? ['shares'] : []),
  ]
  const params = types.map((type, at) => `$${2 + at}::${type}`)
  const event = `(SELECT 1 AS n, ${params.map((param, at) => `${param} AS ${columns[at]}`).join(', ')}) AS e`
  const events = `unnest(${params.map((param) => `${param}[]`).join(', ')}) WITH ORDINALITY AS e (${columns.join(', ')}, n)`
  const group = isForGroups ? 'g.id' : `$${2 + types.length}::integer`
  const key = isPlainText ? 'NULL::text' : 'e.key'
  const slot = isForGroups ? `CASE WHEN g.member > 0 THEN 0 ELSE ${slotOf(key)} END` : slotOf(key)
  const rest = isPlainText ? 'NULL, 0, 0' : 'e.key, e.due_ms, e.expires_ms'
  const join = isForGroups ? ' JOIN heddle_group AS g ON g.event = e.event' : ''
  const place = isForGroups ? 'NULL' : `$${3 + types.length}::bigint`
  const shares = isShared ? 'e.shares' : null
  const share = isForGroups ? shareSql('postgres', shares, 'g') : (shares ?? 'NULL')
  return `INSERT INTO heddle_delivery (grp, place, slot, thread, event_id, event, envelope, payload, key, due_ms, expires_ms, share)
    SELECT ${group}, ${place}, ${slot}, $1::bigint, e.id, e.event, e.envelope, e.payload, ${rest}, ${share}
    FROM ${isSingle ? event : events}${join}
    WHERE ${IS_DRAWING} ORDER BY e.n`
}

const FORMS: readonly RowForm[] = ['plain', 'timed', 'shared']
const EITHER = [false, true]
const TEXTS = new Map(
  EITHER.flatMap((isForGroups) =>
    FORMS.flatMap((form) =>
      EITHER.map((isSingle) => [`${isForGroups} ${form} ${isSingle}`, textOf(isForGroups, form, isSingle)] as const),
    ),
  ),
)

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
  const form = formOf(frames)
  const isSingle = frames.length === 1
  const texts = (of: (frame: EventFrame) => string | null): SqlValue =>
    isSingle ? of(frames[0]!) : textArray(frames.map(of))
  const numbers = (of: (frame: EventFrame) => number): SqlValue => (isSingle ? of(frames[0]!) : arrayOf(frames.map(of)))
  const params: SqlValue[] = [
    threadOf(member, thread),
    texts(({ id }) => id),
    texts(({ event }) => event),
    texts(envelopeOf),
    texts(({ payload }) => payload),
  ]
  if (form !== 'plain')
    params.push(
      texts(({ key }) => keyColumnOf(key)),
      numbers(dueMsOf),
      numbers(expiresMsOf),
    )
  if (form === 'shared') params.push(texts(sharesColumnOf))
  if (recipients === 'later') params.push(unassignedOf(member), subscriptions)
  else if (recipients === 'broker') params.push(BROKER, null)
  return { sql: TEXTS.get(`${recipients === 'groups'} ${form} ${isSingle}`)!, params }
}
