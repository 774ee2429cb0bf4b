// What was taken back in the last minutes, as the database has noted it.
import type { Queryable } from '../../contracts/db.ts'
import type { CancelTarget } from '../../contracts/events.ts'
import { chainOf } from '../../core/causality/ancestors.ts'
import { Cancels, isRevival, isTree, type Revival, type Revived, revivalOf } from '../events/cancelling.ts'
import { CLOCK_MS } from './database.ts'
import { textArray } from './text-array.ts'

export type Dialect = keyof typeof CLOCK_MS
/** As it is noted. */
export type CancelNote = CancelTarget | Revival

/** The last row number used. */
export const LAST_SEQ: Record<Dialect, string> = {
  sqlite: "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'heddle_delivery'), 0)",
  postgres: "coalesce(pg_sequence_last_value('heddle_delivery_seq'), 0)",
}

/**
 * What was taken back in the last minutes: each process looks whether it has some in hand.
 * `what` is a `CancelNote` as JSON; rows above `last_seq` are not meant, except those that an event has caused. `at_ms` is by the database's clock.
 */
export const cancelTable = (dialect: Dialect): string =>
  `CREATE TABLE IF NOT EXISTS heddle_cancel (
    n ${dialect === 'sqlite' ? 'INTEGER PRIMARY KEY AUTOINCREMENT' : 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY'},
    what TEXT NOT NULL, last_seq BIGINT NOT NULL, at_ms BIGINT NOT NULL)`

/** @returns number of the note, and of the last row that is meant */
export async function noteCancel(
  tx: Queryable,
  dialect: Dialect,
  what: CancelNote,
): Promise<{ n: number; lastSeq: number }> {
  const { rows } = await tx.execute<{ n: number; last_seq: number }>(
    `INSERT INTO heddle_cancel (what, last_seq, at_ms) VALUES ($1, ${LAST_SEQ[dialect]}, ${CLOCK_MS[dialect]}) RETURNING n, last_seq`,
    [JSON.stringify(what)],
  )
  return { n: Number(rows[0]!.n), lastSeq: Number(rows[0]!.last_seq) }
}

const HAS_TREE: Record<Dialect, string> = {
  sqlite: 'SELECT 1 AS found FROM heddle_cancel WHERE what IN (SELECT value FROM json_each($1)) LIMIT 1',
  postgres: 'SELECT 1 AS found FROM heddle_cancel WHERE what = ANY($1::text[]) LIMIT 1',
}
const TREES = `SELECT what FROM heddle_cancel WHERE substr(what, 1, 6) = '{"id":' OR substr(what, 1, 11) = '{"event":""' ORDER BY n`

/** True for an event of a tree that was taken back in the last minutes, and was not replayed since. */
export async function isOfCancelled(from: Queryable, dialect: Dialect, event: Revived): Promise<boolean> {
  const notes = chainOf(event).map((id) => JSON.stringify({ id, causedToo: true } satisfies CancelTarget))
  const list = dialect === 'sqlite' ? JSON.stringify(notes) : textArray(notes)
  if ((await from.queryOne(HAS_TREE[dialect], [list])) === null) return false
  const cancels = new Cancels()
  for (const { what } of await from.query<{ what: string }>(TREES)) {
    const note = JSON.parse(what) as CancelNote
    if (isRevival(note)) cancels.revive(note.revived)
    else if (isTree(note)) cancels.add(note, Number.POSITIVE_INFINITY)
  }
  return cancels.hasTree(event)
}

/** A dead letter of the event is replayed. @returns number of the note; 0: it needs none */
export async function noteRevival(tx: Queryable, dialect: Dialect, event: Revived): Promise<number> {
  return (await isOfCancelled(tx, dialect, event)) ? (await noteCancel(tx, dialect, revivalOf(event))).n : 0
}
