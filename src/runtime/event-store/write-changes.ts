// Writes outcomes of deliveries.
import type { Queryable } from '../../contracts/db.ts'
import type { GroupRow, NotedDelivery, StoreAnswer, StoreChanges } from '../../transport/store-changes.ts'
import { beginRows } from './begun-rows.ts'
import { ownTransaction, type StoreDatabase } from './database.ts'
import { endReplays, insertDeadLetters, unblocking } from './dead-letter-rows.ts'
import { PROMOTED_MAX } from './delivery-rows.ts'
import { PositionList, storable } from './event-columns.ts'
import { writeServerChanges } from './server-changes.ts'

/** Smallest number of adjacent rows deleted as a range. */
const RANGE_MIN = 16

const DELETE = new PositionList('DELETE FROM heddle_delivery WHERE seq IN')
/** Skips older notes: an abandoned lane may write its batch late, after another one has. */
const NOTE = `UPDATE heddle_delivery SET attempt = $1, deaths = $2, error = $3, begun = $4, retry_ms = $5, due_ms = $6 WHERE seq = $7 AND attempt <= $1`
const UPSERT_GROUP = `INSERT INTO heddle_group (id, event, grp, kind, seen_ms) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (event, grp, kind) DO UPDATE SET id = excluded.id, seen_ms = excluded.seen_ms`
/** A dead letter whose replay was deleted with its group is a dead letter again. */
const END_UNHANDLED = `UPDATE heddle_dead SET replay = '', replay_seq = 0
  WHERE replay = 'running' AND NOT EXISTS (SELECT 1 FROM heddle_delivery WHERE seq = heddle_dead.replay_seq)`
const SAME_GROUP = 'SELECT id FROM heddle_group WHERE event = $1 AND grp = $2 AND kind = $3'
const COLUMNS =
  'grp, thread, event_id, event, envelope, payload, key, expires_ms, attempt, deaths, error, begun, retry_ms, crashes, share'
const DUE = `SELECT seq, grp, place, uniq FROM heddle_delivery WHERE due_ms > 0 AND due_ms <= $1 ORDER BY due_ms, seq LIMIT ${PROMOTED_MAX}`
const PROMOTE = `INSERT INTO heddle_delivery (${COLUMNS}, uniq) SELECT ${COLUMNS}, $2 FROM heddle_delivery WHERE seq = $1`
const NOT_ALONE = 'UPDATE heddle_delivery SET uniq = NULL WHERE seq = $1'
/** After PROMOTE: the replay of a dead letter stays one. */
const PROMOTE_REPLAY =
  "UPDATE heddle_dead SET replay_seq = (SELECT max(seq) FROM heddle_delivery) WHERE replay_seq = $1 AND replay = 'running'"

const NOTHING: StoreAnswer = { promoted: [] }

/** Writes changes. Plain deletes share the commits of the thread; anything else is one transaction. */
export async function writeStoreChanges(db: StoreDatabase, changes: StoreChanges): Promise<StoreAnswer> {
  const { done, noted, begun, deadLetters, replayed, groups, promoteMs, fences } = changes
  if (fences !== undefined) return writeServerChanges(db, changes, fences)
  const areDeletes =
    [noted, begun, deadLetters, replayed, groups].every(({ length }) => length === 0) && promoteMs === 0
  if (areDeletes) {
    await deleteRows(db, done)
    return NOTHING
  }
  return ownTransaction(db, async (tx) => {
    for (const row of groups) await writeGroup(tx, row)
    if (groups.some(({ seenMs }) => seenMs === null)) await tx.execute(END_UNHANDLED)
    for (const delivery of noted) await note(tx, delivery)
    const answer: StoreAnswer =
      begun.length === 0 ? { ...NOTHING } : { promoted: [], begun: await beginRows(tx, 'sqlite', begun) }
    const left = await insertDeadLetters(tx, deadLetters)
    // After a lost answer they may be there.
    if (left.length > 0) answer.unstored = await unblocking(tx, left)
    await endReplays(tx, replayed)
    await deleteRows(tx, done)
    return promoteMs > 0 ? { ...answer, promoted: await promote(tx, promoteMs) } : answer
  })
}

async function note(tx: Queryable, delivery: NotedDelivery): Promise<void> {
  const { seq, attempt, deaths, error, isBegun, retryMs, dueMs } = delivery
  await tx.execute(NOTE, [attempt, deaths, storable(error), isBegun ? 1 : 0, retryMs, dueMs, seq])
}

async function writeGroup(tx: Queryable, { id, event, group, kind, seenMs }: GroupRow): Promise<void> {
  if (seenMs !== null) {
    const found = await tx.queryOne<{ id: number }>(SAME_GROUP, [event, group, kind])
    // A foreign row: the number is ours.
    if (found === null) await tx.execute('DELETE FROM heddle_group WHERE id = $1', [id])
    else if (Number(found.id) !== id) await renumber(tx, Number(found.id), id)
    await tx.execute(UPSERT_GROUP, [id, event, group, kind, seenMs])
    return
  }
  await tx.execute('DELETE FROM heddle_group WHERE id = $1', [id])
  await tx.execute('DELETE FROM heddle_parked WHERE grp = $1', [id])
  // Two statements, because each has an index.
  await tx.execute('DELETE FROM heddle_delivery WHERE grp = $1 AND due_ms = 0', [id])
  await tx.execute('DELETE FROM heddle_delivery WHERE grp = $1 AND due_ms > 0', [id])
}

async function renumber(tx: Queryable, from: number, to: number): Promise<void> {
  for (const which of ['due_ms = 0', 'due_ms > 0'])
    await tx.execute(`UPDATE heddle_delivery SET grp = $1 WHERE grp = $2 AND ${which}`, [to, from])
  await tx.execute('DELETE FROM heddle_group WHERE id = $1 OR id = $2', [from, to])
}

/** Moves due rows to the end of the order. @returns their groups */
async function promote(tx: Queryable, dueMs: number): Promise<number[]> {
  const rows = await tx.query<{ seq: number; grp: number; place: number | null; uniq: string | null }>(DUE, [dueMs])
  for (const { seq, place, uniq } of rows) {
    if (uniq !== null) await tx.execute(NOT_ALONE, [seq])
    await tx.execute(PROMOTE, [seq, uniq])
    if (place !== null) await tx.execute(PROMOTE_REPLAY, [seq])
  }
  await deleteRows(
    tx,
    rows.map(({ seq }) => Number(seq)),
  )
  return [...new Set(rows.map(({ grp }) => Number(grp)))]
}

async function deleteRows(to: Queryable, seqs: readonly number[]): Promise<void> {
  const sorted = Float64Array.from(seqs).sort()
  const single: number[] = []
  const deletes: Promise<unknown>[] = []
  for (let from = 0; from < sorted.length; ) {
    let end = from + 1
    while (end < sorted.length && sorted[end]! <= sorted[end - 1]! + 1) end++
    // Every number of the range is in the list: no other row can be in between.
    if (end - from >= RANGE_MIN)
      deletes.push(
        to.execute('DELETE FROM heddle_delivery WHERE seq BETWEEN $1 AND $2', [sorted[from]!, sorted[end - 1]!]),
      )
    else for (let n = from; n < end; n++) single.push(sorted[n]!)
    from = end
  }
  deletes.push(...DELETE.run(to, single))
  await Promise.all(deletes)
}
