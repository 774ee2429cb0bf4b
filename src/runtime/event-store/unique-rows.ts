// The rows of events that a subscriber has one at a time.
import type { Queryable, SqlValue } from '../../contracts/db.ts'
import type { EventFrame, UniqueEvent } from '../../transport/frames/event-frame.ts'
import { otherKey } from '../events/publication.ts'
import { isOfCancelled } from './cancel-notes.ts'
import { ALL_GROUPS } from './delivery-rows.ts'
import { dueMsOf, envelopeOf, expiresMsOf, keyColumnOf, shareSql, sharesColumnOf } from './event-columns.ts'
import { threadOf, unassignedOf } from './server-rows.ts'
import { IS_DRAWING, slotOf } from './server-tables.ts'
import { ALONE } from './store-tables.ts'

/*
 * The column `uniq` names what a row is alone with in its group: `r`, the event and the name, as JSON, until the row ends; `w` likewise until a handler
 * begins it, which makes it `b`, with the number of the row behind it. Rows without a group of their own yet are alone among themselves.
 */

export type UniqueFrame = EventFrame & { unique: UniqueEvent }

export const isUnique = (frame: EventFrame): frame is UniqueFrame => frame.unique !== null

const columnOf = (mode: 'waiting' | 'running', event: string, name: string): string =>
  `${mode[0]} ${event} ${JSON.stringify(name)}`

/** The columns of rows that are alone, whatever ends that. */
export const uniqueColumns = (event: string, name: string): string[] =>
  (['waiting', 'running'] as const).map((mode) => columnOf(mode, event, name))

/** The columns of begun rows begin with this. */
export const begunColumn = (event: string, name: string): string => `b ${event} ${JSON.stringify(name)} `

/** Returns what a row is alone with; null for a foreign value. A row that was begun is as one that is alone until it ends. */
export function uniqueIn(column: string | null): UniqueEvent | null {
  const [, mode, json] = /^([wrb]) \S+ (".*")(?: \d+)?$/s.exec(column ?? '') ?? []
  if (json === undefined) return null
  return { name: JSON.parse(json) as string, while: mode === 'w' ? 'waiting' : 'running', replaces: false }
}

/**
 * Rows that wait in their groups, and are replaced by rows that had none: those were stored later, while the process started.
 * @param unassigned condition for a row `d` that goes to its groups
 */
export const deleteReplaced = (unassigned: string): string =>
  `DELETE FROM heddle_delivery WHERE seq IN (SELECT o.seq FROM heddle_delivery AS d JOIN heddle_delivery AS o ON o.uniq = d.uniq AND o.grp > 0
     WHERE substr(d.uniq, 1, 1) = 'w' AND ${unassigned})`

/** Where events are stored, and by whom. */
export interface UniqueTarget {
  dialect: 'sqlite' | 'postgres'
  /** True for the groups that are known; false for all later ones. */
  isForGroups: boolean
  thread: number
  /** On a server. */
  member: number
  subscriptions: number
}

/** What has become of an event. */
export interface UniqueOutcome {
  /** Of the event that is there: of this one, or of the one that was there before. */
  id: string
  /** False if it was there before. */
  isNew: boolean
  /** Due time of the row that was replaced, milliseconds since the epoch; 0: none was moved. */
  movedToMs: number | null
}

/** Of a row `d` that goes to the group `g`, unless that has one like it. */
export const UNIQUE_OF_GROUP = "CASE WHEN g.kind = 'group' THEN d.uniq END"
export const IF_ALONE = `ON CONFLICT ${ALONE} DO NOTHING`

const COLUMNS = 'event_id, event, envelope, payload, key, due_ms, expires_ms'
/** Broadcasts, and subscribers that came after the boot, get every event. */
const UNIQ = "CASE WHEN g.kind = 'group' THEN $9 END"
const CONFLICT = `ON CONFLICT ${ALONE} DO`
/** A row that is to be delivered now cannot take its old place in the order: it comes due. $11: an even time that is now. */
const REPLACE = `${CONFLICT} UPDATE SET thread = excluded.thread, envelope = excluded.envelope, payload = excluded.payload, expires_ms = excluded.expires_ms, share = excluded.share,
  due_ms = CASE WHEN excluded.due_ms = 0 AND heddle_delivery.due_ms > 0 THEN CAST($11 AS BIGINT) ELSE excluded.due_ms END`

/** $1 to $10: thread, columns, `uniq`, the shares. */
function insertText({ dialect, isForGroups, member, subscriptions }: UniqueTarget, replaces: boolean): string {
  const conflict = replaces ? REPLACE : `${CONFLICT} NOTHING`
  const values = '$2, $3, $4, $5, $6, $7, $8'
  if (dialect === 'sqlite') {
    const rows = isForGroups
      ? `SELECT g.id, $1, ${values}, ${UNIQ}, ${shareSql('sqlite', '$10', 'g')} FROM heddle_group AS g WHERE g.event = $3`
      : `VALUES (${ALL_GROUPS}, $1, ${values}, $9, $10)`
    return `INSERT INTO heddle_delivery (grp, thread, ${COLUMNS}, uniq, share) ${rows} ${conflict} RETURNING event_id, due_ms`
  }
  const typed = '$2::text, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::bigint'
  const rows = isForGroups
    ? `g.id, NULL::bigint, CASE WHEN g.member > 0 THEN 0 ELSE ${slotOf('$6::text')} END, $1::bigint, ${typed}, ${UNIQ.replace('$9', '$9::text')}, ${shareSql('postgres', '$10::text', 'g')}
       FROM heddle_group AS g WHERE g.event = $3::text AND`
    : `${unassignedOf(member)}, ${subscriptions}, ${slotOf('$6::text')}, $1::bigint, ${typed}, $9::text, $10::text WHERE`
  return `INSERT INTO heddle_delivery (grp, place, slot, thread, ${COLUMNS}, uniq, share) SELECT ${rows} ${IS_DRAWING} ${conflict} RETURNING event_id, due_ms`
}

const FOUND = 'SELECT event_id, grp, key, expires_ms, begun FROM heddle_delivery WHERE uniq = $1 ORDER BY seq'
/** Nobody delivers them any more. */
const DELETE_EXPIRED =
  'DELETE FROM heddle_delivery WHERE uniq = $1 AND begun = 0 AND expires_ms > 0 AND expires_ms < $2'
interface Found {
  event_id: string
  grp: number
  key: string | null
  expires_ms: number
  begun: number
}

const isExpired = ({ expires_ms, begun }: Found, nowMs: number): boolean =>
  Number(begun) === 0 && Number(expires_ms) > 0 && Number(expires_ms) < nowMs

const HAS_GROUPS = 'SELECT 1 AS found FROM heddle_group WHERE event = $1 LIMIT 1'

/**
 * Stores an event for each group that has none like it.
 * @param to a transaction, or the database
 * @throws DbError; EVENT_OPTIONS_INVALID if the one it would replace has another key
 */
export async function insertUnique(to: Queryable, target: UniqueTarget, frame: UniqueFrame): Promise<UniqueOutcome> {
  const { id, event, unique } = frame
  const column = columnOf(unique.while, event, unique.name)
  const key = keyColumnOf(frame.key)
  const find = () => to.query<Found & Record<string, never>>(FOUND, [column])
  let before = await find()
  const nowMs = Math.floor(frame.timestampMs)
  if (before.some((found) => isExpired(found, nowMs))) {
    await to.execute(DELETE_EXPIRED, [column, nowMs])
    before = await find()
  }
  // What a tree publishes after its cancel takes nobody's place.
  const replaces = unique.replaces && !(frame.parentId !== null && (await isOfCancelled(to, target.dialect, frame)))
  if (replaces && before.some((found) => found.key !== key)) throw otherKey(frame)
  // One that waits for its groups goes to all of them.
  const isForGroups = target.isForGroups && !before.some(({ grp }) => Number(grp) <= ALL_GROUPS)
  const thread = target.dialect === 'sqlite' ? target.thread : threadOf(target.member, target.thread)
  const params: SqlValue[] = [
    thread,
    id,
    event,
    envelopeOf(frame),
    frame.payload,
    key,
    dueMsOf(frame),
    expiresMsOf(frame),
    column,
    sharesColumnOf(frame),
  ]
  if (replaces) params.push(2 * Math.floor(frame.timestampMs / 2))
  const text = insertText({ ...target, isForGroups }, replaces)
  for (;;) {
    const { rows } = await to.execute<{ event_id: string; due_ms: number }>(text, params)
    const replaced = rows.find(({ event_id }) => event_id !== id)
    // Its share may have changed, and the limit of the new one lets it begin.
    const isMoved = replaced !== undefined && (frame.shares !== '' || Number(replaced.due_ms) > 0)
    const movedToMs = isMoved ? Number(replaced.due_ms) : null
    if (rows.some(({ event_id }) => event_id === id)) return { id, isNew: true, movedToMs }
    if (replaced !== undefined) return { id: replaced.event_id, isNew: false, movedToMs }
    const [found] = await find()
    if (found !== undefined) return { id: found.event_id, isNew: false, movedToMs }
    // Nobody subscribes. Otherwise the one that was there has ended meanwhile.
    if (isForGroups && (await to.queryOne(HAS_GROUPS, [event])) === null) return { id, isNew: true, movedToMs }
  }
}
