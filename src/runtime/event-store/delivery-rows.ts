// Deliveries as rows, and the statements that insert them.
import type { SqlValue } from '../../contracts/db.ts'
import type { EventFrame } from '../../transport/frames/event-frame.ts'
import { formOf, pushColumns, type RowForm, shareSql } from './event-columns.ts'

/** Group of rows inserted before the groups were known: each row is for all groups of its event. */
export const ALL_GROUPS = 0
/** Group of rows for the message broker. */
export const BROKER = -1

/**
 * Recipients of inserted events: all subscribed groups, the broker, or all later groups once they are known.
 */
export type Recipients = 'groups' | 'broker' | 'later'

/** Maximum number of rows moved to the end of the order in one commit. */
export const PROMOTED_MAX = 256

/** Maximum number of events of one statement, and the sizes of statements: few, so that each is prepared once. */
export const INSERT_MAX = 32
const SIZES = [INSERT_MAX, 8, 1]

const COLUMNS: Record<RowForm, number> = { plain: 4, timed: 7, shared: 8 }

const TARGETS: Record<Recipients, { group: string; from: string }> = {
  // In this order: SQLite may not read the groups first, or the events of a statement would change places.
  groups: { group: 'g.id', from: ' CROSS JOIN heddle_group AS g ON g.event = e.column2' },
  broker: { group: String(BROKER), from: '' },
  later: { group: String(ALL_GROUPS), from: '' },
}

/** The share of an event for a group. Without groups all shares are kept for those that come. */
const SHARE: Record<Recipients, string> = {
  groups: shareSql('sqlite', 'e.column8', 'g'),
  broker: 'NULL',
  later: 'e.column8',
}

/** $1 is the thread. */
function textOf(recipients: Recipients, size: number, form: RowForm): string {
  const columns = COLUMNS[form]
  const rowOf = (row: number): string =>
    `(${Array.from({ length: columns }, (_, column) => `$${2 + row * columns + column}`).join(', ')})`
  const rows = Array.from({ length: size }, (_, row) => rowOf(row)).join(', ')
  const { group, from } = TARGETS[recipients]
  const rest = form === 'plain' ? 'NULL, 0, 0' : 'e.column5, e.column6, e.column7'
  const unknown = recipients === 'groups' ? shareSql('sqlite', null, 'g') : 'NULL'
  const share = form === 'shared' ? SHARE[recipients] : unknown
  return `INSERT INTO heddle_delivery (grp, thread, event_id, event, envelope, payload, key, due_ms, expires_ms, share)
    SELECT ${group}, $1, e.column1, e.column2, e.column3, e.column4, ${rest}, ${share} FROM (VALUES ${rows}) AS e${from}`
}

const texts = new Map<string, string>()

function cachedTextOf(recipients: Recipients, size: number, form: RowForm): string {
  const name = `${recipients} ${size} ${form}`
  let text = texts.get(name)
  if (text === undefined) {
    text = textOf(recipients, size, form)
    texts.set(name, text)
  }
  return text
}

/** Number of events of the next statement, out of the remaining ones. */
export const sizeFor = (left: number): number => SIZES.find((size) => size <= left)!

/**
 * The statement for inserting events: one row for each recipient, in the order of the events.
 * @param frames of a number given by `sizeFor`; their payloads are text
 * @param thread number of the publishing thread
 */
export function insertStatement(
  recipients: Recipients,
  frames: readonly EventFrame[],
  thread: number,
): { sql: string; params: SqlValue[] } {
  const form = formOf(frames)
  const params: SqlValue[] = [thread]
  for (const frame of frames) pushColumns(params, frame, form)
  return { sql: cachedTextOf(recipients, frames.length, form), params }
}
