// The rows of events that are taken back.
import type { Queryable } from '../../contracts/db.ts'
import type { CancelTarget } from '../../contracts/events.ts'
import { CANCELLED, isTree } from '../events/cancelling.ts'
import { IS_CAUSED_ON_SERVER } from './caused-rows.ts'
import { CLOCK_MS, type StoreDatabase } from './database.ts'
import { keyColumnOf } from './event-columns.ts'
import { cancelReports } from './report-rows.ts'
import { begunColumn, uniqueColumns } from './unique-rows.ts'

type Dialect = keyof typeof CLOCK_MS

/** Replays of dead letters whose rows are gone. */
const END_REPLAYS = `UPDATE heddle_dead SET replay = 'failed', replay_error = $1, is_parked = 0, payload = '' WHERE replay = 'running' AND replay_seq > 0
  AND NOT EXISTS (SELECT 1 FROM heddle_delivery WHERE seq = heddle_dead.replay_seq)`

/** Rows that one statement deletes. */
const PAGE = 10_000

const LAST_SEQ: Record<Dialect, string> = {
  sqlite: "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'heddle_delivery'), 0)",
  postgres: "coalesce(pg_sequence_last_value('heddle_delivery_seq'), 0)",
}

/** The last row number used. */
export async function lastSeqOf(db: StoreDatabase): Promise<number> {
  return Number((await db.queryOne<{ last: number }>(`SELECT ${LAST_SEQ[db.dialect]} AS last`))!.last)
}

/**
 * What was taken back in the last minutes: each process looks whether it has some in hand.
 * `what` is a `CancelTarget` as JSON; rows above `last_seq` are not meant, except those that an event has caused. `at_ms` is by the database's clock.
 */
export const cancelTable = (dialect: Dialect): string =>
  `CREATE TABLE IF NOT EXISTS heddle_cancel (
    n ${dialect === 'sqlite' ? 'INTEGER PRIMARY KEY AUTOINCREMENT' : 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY'},
    what TEXT NOT NULL, last_seq BIGINT NOT NULL, at_ms BIGINT NOT NULL)`

/**
 * Deletes the rows, and notes it for those who have some in hand.
 * @param caused on a file: the rows that a tree has, see `findCaused`
 * @param isAgain true for what was taken back before, and may have published meanwhile
 * @returns numbers of the rows, of the note, and of the last row that is meant
 */
export async function cancelRows(
  tx: Queryable,
  dialect: Dialect,
  what: CancelTarget,
  caused: readonly number[],
  isAgain = false,
): Promise<{ seqs: number[]; n: number; lastSeq: number }> {
  const seqs: number[] = []
  const ids = new Set<string>()
  for (const { where, params } of conditionsOf(what, dialect, caused)) {
    for (let found = PAGE; found === PAGE; ) {
      const { rows } = await tx.execute<{ seq: number; event_id: string }>(
        `DELETE FROM heddle_delivery WHERE seq IN (SELECT seq FROM heddle_delivery WHERE ${where} LIMIT ${PAGE}) RETURNING seq, event_id`,
        params,
      )
      found = rows.length
      for (const { seq, event_id } of rows) {
        seqs.push(Number(seq))
        ids.add(event_id)
      }
    }
  }
  // What a tree publishes from now on is meant as well.
  if (seqs.length === 0 && (isAgain || !isTree(what))) return { seqs, n: 0, lastSeq: 0 }
  if (seqs.length > 0) {
    await tx.execute(END_REPLAYS, [CANCELLED])
    await cancelReports(tx, dialect, [...ids])
  }
  const { rows } = await tx.execute<{ n: number; last_seq: number }>(
    `INSERT INTO heddle_cancel (what, last_seq, at_ms) VALUES ($1, ${LAST_SEQ[dialect]}, ${CLOCK_MS[dialect]}) RETURNING n, last_seq`,
    [JSON.stringify(what)],
  )
  return { seqs, n: Number(rows[0]!.n), lastSeq: Number(rows[0]!.last_seq) }
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
        ? { where: 'seq IN (SELECT value FROM json_each($1))', params: [JSON.stringify(caused)] }
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
