import type { Queryable, SqlValue } from '../../contracts/db.ts'
import type { LogChanges, WaitingDelivery } from '../../transport/log-changes.ts'
import { PositionList } from './position-lists.ts'

/** Rows of one INSERT: few sizes, so that each is prepared once. */
const ROW_SIZES = [64, 8, 1] as const
const COLUMNS = ['seq', 'grp', 'attempt', 'deaths', 'due_ms', 'error'] as const

const UPSERTS: ReadonlyMap<number, string> = new Map(
  ROW_SIZES.map((size) => {
    const rowOf = (row: number): string =>
      COLUMNS.map((_, column) => `$${row * COLUMNS.length + column + 1}`).join(', ')
    const rows = Array.from({ length: size }, (_, row) => `(${rowOf(row)})`).join(', ')
    return [
      size,
      `INSERT INTO heddle_delivery (${COLUMNS.join(', ')}) VALUES ${rows} ON CONFLICT (seq, grp) DO UPDATE SET
         attempt = excluded.attempt, deaths = excluded.deaths, due_ms = excluded.due_ms, error = excluded.error`,
    ]
  }),
)
const SPLIT = new PositionList('UPDATE heddle_event SET is_split = 1 WHERE is_split = 0 AND seq IN')
const DONE = new PositionList('DELETE FROM heddle_delivery WHERE grp = $1 AND seq IN', 2)
const FORGOTTEN = new PositionList('DELETE FROM heddle_delivery WHERE seq IN')

/*
 * Deliveries that have rows of their own, many in one statement: on a server each statement is a way there and back, and while the changes of one
 * batch are on their way, the next one grows.
 */

/** Stores deliveries that wait. What was told last of one holds. */
export async function storeWaiting(tx: Queryable, waiting: readonly WaitingDelivery[]): Promise<void> {
  // A statement may not change a row twice.
  const last = new Map(waiting.map((delivery) => [`${delivery.seq} ${delivery.group}`, delivery]))
  const rows = [...last.values()]
  for (let from = 0; from < rows.length; ) {
    const size = ROW_SIZES.find((each) => each <= rows.length - from)!
    const params: SqlValue[] = []
    for (const { seq, group, attempt, deaths, dueMs, error } of rows.slice(from, from + size))
      params.push(seq, group, attempt, deaths, dueMs, error)
    await tx.execute(UPSERTS.get(size)!, params)
    from += size
  }
  await Promise.all(SPLIT.run(tx, [...new Set(rows.map(({ seq }) => seq))]))
}

/** Deletes deliveries that are done. */
export async function deleteDone(tx: Queryable, done: LogChanges['done']): Promise<void> {
  const positions = new Map<string, number[]>()
  for (const { seq, group } of done) {
    const known = positions.get(group)
    if (known === undefined) positions.set(group, [seq])
    else known.push(seq)
  }
  for (const [group, seqs] of positions) await Promise.all(DONE.run(tx, seqs, '', [group]))
}

/** Deletes all deliveries of events. */
export async function deleteAllOf(tx: Queryable, events: readonly number[]): Promise<void> {
  await Promise.all(FORGOTTEN.run(tx, events))
}
