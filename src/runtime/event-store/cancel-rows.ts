// The rows of events that are taken back.
import type { Queryable } from '../../contracts/db.ts'
import type { CancelTarget } from '../../contracts/events.ts'
import { CANCELLED, isTree, type Revived } from '../events/cancelling.ts'
import { type Dialect, LAST_SEQ, noteCancel } from './cancel-notes.ts'
import { IS_CAUSED_ON_SERVER, isCausedOnFile } from './caused-rows.ts'
import type { StoreDatabase } from './database.ts'
import { keyColumnOf, lineageIn, PositionList } from './event-columns.ts'
import { cancelReports } from './report-rows.ts'
import { begunColumn, uniqueColumns } from './unique-rows.ts'

/** Replays of dead letters whose rows are gone. */
const END_REPLAYS = `UPDATE heddle_dead SET replay = 'failed', replay_error = $1, is_parked = 0, payload = '' WHERE replay = 'running' AND replay_seq > 0
  AND NOT EXISTS (SELECT 1 FROM heddle_delivery WHERE seq = heddle_dead.replay_seq)`

/** Rows that one statement deletes. */
const PAGE = 10_000
const DELETE_LATE = new PositionList('DELETE FROM heddle_delivery WHERE seq IN')

/** The last row number used. */
export async function lastSeqOf(db: StoreDatabase): Promise<number> {
  return Number((await db.queryOne<{ last: number }>(`SELECT ${LAST_SEQ[db.dialect]} AS last`))!.last)
}

/** What was deleted. */
export interface CancelledRows {
  /** Numbers of the rows. */
  seqs: number[]
  /** Number of the note; 0: there was nothing. */
  n: number
  /** Number of the last row that is meant. */
  lastSeq: number
}

/**
 * Deletes the rows, and notes it for those who have some in hand.
 * @param caused on a file: the rows that a tree has, see `findCaused`
 */
export async function cancelRows(
  tx: Queryable,
  dialect: Dialect,
  what: CancelTarget,
  caused: readonly number[],
): Promise<CancelledRows> {
  const seqs: number[] = []
  const ids = new Set<string>()
  for (const { where, params } of conditionsOf(what, dialect, caused)) {
    // A row may be replaced or moved by another transaction that this one waits for: it is looked at again.
    const again = dialect === 'sqlite' ? '' : ` AND ${where}`
    for (let found = PAGE; found > 0; ) {
      const { rows } = await tx.execute<{ seq: number; event_id: string }>(
        `DELETE FROM heddle_delivery WHERE seq IN (SELECT seq FROM heddle_delivery WHERE ${where} LIMIT ${PAGE})${again} RETURNING seq, event_id`,
        params,
      )
      // On a server others may have deleted some of the page.
      found = dialect === 'sqlite' && rows.length < PAGE ? 0 : rows.length
      for (const { seq, event_id } of rows) {
        seqs.push(Number(seq))
        ids.add(event_id)
      }
    }
  }
  // What a tree publishes from now on is meant as well.
  if (seqs.length === 0 && !isTree(what)) return { seqs, n: 0, lastSeq: 0 }
  return noted(tx, dialect, what, seqs, ids)
}

/**
 * Deletes what a tree has published since it was taken back.
 * @param caused as for `cancelRows`
 * @param isMeant false for what comes from a replay
 */
export async function cancelLateRows(
  tx: Queryable,
  dialect: Dialect,
  what: CancelTarget,
  caused: readonly number[],
  isMeant: (event: Revived) => boolean,
): Promise<CancelledRows> {
  const seqs: number[] = []
  const ids = new Set<string>()
  for (const { where, params } of conditionsOf(what, dialect, caused))
    for (let after = 0, found = PAGE; found === PAGE; ) {
      const rows = await tx.query<{ seq: number; event_id: string; envelope: string }>(
        `SELECT seq, event_id, envelope FROM heddle_delivery WHERE ${where} AND seq > ${after} ORDER BY seq LIMIT ${PAGE}`,
        params,
      )
      found = rows.length
      after = Number(rows.at(-1)?.seq ?? after)
      const meant = rows.filter(({ event_id, envelope }) => isMeant({ id: event_id, ...lineageIn(envelope) }))
      await Promise.all(
        DELETE_LATE.run(
          tx,
          meant.map(({ seq }) => Number(seq)),
        ),
      )
      for (const { seq, event_id } of meant) {
        seqs.push(Number(seq))
        ids.add(event_id)
      }
    }
  return seqs.length === 0 ? { seqs, n: 0, lastSeq: 0 } : noted(tx, dialect, what, seqs, ids)
}

async function noted(
  tx: Queryable,
  dialect: Dialect,
  what: CancelTarget,
  seqs: number[],
  ids: ReadonlySet<string>,
): Promise<CancelledRows> {
  if (seqs.length > 0) {
    await tx.execute(END_REPLAYS, [CANCELLED])
    await cancelReports(tx, dialect, [...ids])
  }
  return { seqs, ...(await noteCancel(tx, dialect, what)) }
}

/** Rows that are ready, and rows that are due later, each by an index; rows without a group by their event. */
function conditionsOf(
  what: CancelTarget,
  dialect: Dialect,
  caused: readonly number[],
): { where: string; params: string[] }[] {
  const ofId = (id: string) => ({ where: 'event_id = $1', params: [id] })
  if (typeof what === 'string') return [ofId(what)]
  if (isTree(what))
    return [
      ofId(what.id),
      dialect === 'sqlite'
        ? // One of them may have been replaced since they were found.
          {
            where: `seq IN (SELECT value FROM json_each($1)) AND ${isCausedOnFile('$2')}`,
            params: [JSON.stringify(caused), what.id],
          }
        : { where: IS_CAUSED_ON_SERVER, params: [what.id] },
    ]
  const key = what.key === undefined ? null : keyColumnOf(what.key)
  if (what.unique !== undefined) {
    const names = uniqueColumns(what.event, what.unique)
    const begun = begunColumn(what.event, what.unique)
    const [ofKey, ofKeyToo, keys] = key === null ? ['', '', []] : [' AND key = $3', ' AND key = $2', [key]]
    return [
      { where: `uniq IN ($1, $2)${ofKey}`, params: [...names, ...keys] },
      { where: `uniq IS NOT NULL AND substr(uniq, 1, length($1)) = $1${ofKeyToo}`, params: [begun, ...keys] },
    ]
  }
  const isOf = key === null ? '' : ' AND key = $2'
  const params = key === null ? [what.event] : [what.event, key]
  const groups = 'grp IN (SELECT id FROM heddle_group WHERE event = $1)'
  return [
    { where: `${groups} AND due_ms = 0${isOf}`, params },
    { where: `${groups} AND due_ms > 0${isOf}`, params },
    { where: `grp <= 0 AND event = $1${isOf}`, params },
  ]
}
