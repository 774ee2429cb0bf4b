// Writes outcomes of deliveries on PostgreSQL, only for slots still owned by the process.
import type { Queryable } from '../../contracts/db.ts'
import type { Fences, GroupRow, NotedDelivery, StoreAnswer, StoreChanges } from '../../transport/store-changes.ts'
import { beginRows } from './begun-rows.ts'
import { ownTransaction, type StoreDatabase } from './database.ts'
import { endReplays, insertDeadLetters } from './dead-letter-rows.ts'
import { PROMOTED_MAX } from './delivery-rows.ts'
import { storable } from './event-columns.ts'
import { IS_DRAWING, slotOf } from './server-tables.ts'

/*
 * A process takes a slot by an update of its row, and waits for settlements that hold it FOR SHARE: a lost slot gets no more writes.
 */

/** $1 the member; $2, $3, $4 the slots. */
const HELD = `SELECT s.grp, s.slot FROM heddle_slot AS s JOIN unnest($2::int[], $3::int[], $4::bigint[]) AS f (grp, slot, epoch)
  ON s.grp = f.grp AND s.slot = f.slot AND s.epoch = f.epoch WHERE s.member = $1 FOR SHARE OF s`
/** Deletes rows of the slots still owned, in one round trip. */
const DELETE_HELD = `WITH held AS (${HELD}),
  gone AS (DELETE FROM heddle_delivery AS d USING held WHERE d.grp = held.grp AND d.slot = held.slot AND d.seq = ANY($5::bigint[]))
  SELECT grp, slot FROM held`
const DELETE = 'DELETE FROM heddle_delivery WHERE seq = ANY($1::bigint[])'
/** Skips older notes: an abandoned lane may write its batch late, after another one has. */
const NOTE = `UPDATE heddle_delivery AS d SET attempt = n.attempt, deaths = n.deaths, error = n.error, begun = CAST(n."isBegun" AS integer),
  retry_ms = n."retryMs", due_ms = n."dueMs" FROM json_to_recordset($1::json)
    AS n (seq bigint, attempt int, deaths int, error text, "isBegun" boolean, "retryMs" bigint, "dueMs" bigint) WHERE d.seq = n.seq AND d.attempt <= n.attempt`
const PARK = `INSERT INTO heddle_parked (grp, key, dead_letter, slot)
  SELECT id, $1::text, $2, ${slotOf('$1::text')} FROM heddle_group WHERE event = $3 AND grp = $4 AND kind = 'group' ON CONFLICT DO NOTHING`

const DUE = `SELECT d.seq, d.grp, d.slot FROM heddle_slot AS s CROSS JOIN LATERAL (
    SELECT seq, grp, slot, due_ms FROM heddle_delivery WHERE grp = s.grp AND slot = s.slot AND due_ms > 0 AND due_ms <= $2
    ORDER BY due_ms, seq LIMIT ${PROMOTED_MAX}) AS d
  WHERE s.member = $1 ORDER BY d.due_ms, d.seq LIMIT ${PROMOTED_MAX}`
const LOCK_OWN = `SELECT s.grp, s.slot FROM heddle_slot AS s JOIN (SELECT DISTINCT grp, slot FROM unnest($2::int[], $3::int[]) AS u (grp, slot)) AS f
  ON s.grp = f.grp AND s.slot = f.slot WHERE s.member = $1 FOR SHARE OF s`
const MOVED =
  'grp, slot, thread, event_id, event, envelope, payload, key, expires_ms, attempt, deaths, error, begun, retry_ms, crashes, uniq, share'
/** Moves due rows to the end of the order, by their times. The replay of a dead letter stays one. */
const PROMOTE = `WITH due AS (DELETE FROM heddle_delivery WHERE seq = ANY($1::bigint[]) AND due_ms > 0 AND due_ms <= $2 AND ${IS_DRAWING} RETURNING *),
  numbered AS (SELECT nextval('heddle_delivery_seq') AS new_seq, sorted.* FROM (SELECT * FROM due ORDER BY due_ms, seq) AS sorted),
  moved AS (INSERT INTO heddle_delivery (seq, place, ${MOVED})
    SELECT new_seq, CASE WHEN place IS NOT NULL THEN new_seq END, ${MOVED} FROM numbered),
  replays AS (UPDATE heddle_dead SET replay_seq = new_seq FROM numbered
    WHERE numbered.place IS NOT NULL AND replay_seq = numbered.seq AND replay = 'running')
  SELECT DISTINCT grp FROM numbered`

/** A parameter for `$1::int[]`. */
export const arrayOf = (numbers: readonly number[]): string => `{${numbers.join(',')}}`

/** Writes changes. Plain deletes are one statement; anything else is one transaction. */
export async function writeServerChanges(
  db: StoreDatabase,
  changes: StoreChanges,
  fences: Fences,
): Promise<StoreAnswer> {
  const { done, noted, begun, deadLetters, replayed, groups, promoteMs } = changes
  const { member, slots } = fences
  const params = [
    member,
    arrayOf(slots.map(({ group }) => group)),
    arrayOf(slots.map(({ slot }) => slot)),
    arrayOf(slots.map(({ epoch }) => epoch)),
  ]
  const answerOf = (held: readonly { grp: number; slot: number }[], promoted: number[] = []): StoreAnswer => {
    const names = new Set(held.map(({ grp, slot }) => `${grp} ${slot}`))
    return { promoted, lost: slots.flatMap(({ group, slot }, n) => (names.has(`${group} ${slot}`) ? [] : [n])) }
  }
  if ([noted, begun, deadLetters, replayed, groups].every(({ length }) => length === 0) && promoteMs === 0) {
    const { rows } = await db.execute<{ grp: number; slot: number }>(DELETE_HELD, [...params, arrayOf(done)])
    return answerOf(rows)
  }
  return ownTransaction(db, async (tx) => {
    const held = slots.length === 0 ? [] : await tx.query<{ grp: number; slot: number }>(HELD, params)
    const answer = answerOf(held)
    const lost = new Set(answer.lost!.flatMap((n) => slots[n]!.seqs))
    const mayChange = ({ seq }: { seq: number }): boolean => !lost.has(seq)
    for (const row of groups) await writeGroup(tx, row, member)
    await note(tx, noted.filter(mayChange))
    if (begun.length > 0)
      answer.begun = await beginRows(
        tx,
        'postgres',
        begun.filter((seq) => !lost.has(seq)),
      )
    await insertDeadLetters(tx, deadLetters.filter(mayChange), PARK)
    await endReplays(tx, replayed.filter(mayChange))
    const gone = done.filter((seq) => !lost.has(seq))
    if (gone.length > 0) await tx.execute(DELETE, [arrayOf(gone)])
    if (promoteMs > 0) answer.promoted = await promote(tx, member, promoteMs)
    return answer
  })
}

/** Writes the last note of each row. */
async function note(tx: Queryable, noted: readonly NotedDelivery[]): Promise<void> {
  if (noted.length === 0) return
  // PostgreSQL refuses other text.
  const rows = noted.map((each) => ({ ...each, error: storable(each.error) }))
  await tx.execute(NOTE, [JSON.stringify([...new Map(rows.map((row) => [row.seq, row])).values()])])
}

/** Updates or deletes a group, unless another process has it. */
async function writeGroup(tx: Queryable, { id, seenMs }: GroupRow, member: number): Promise<void> {
  if (seenMs !== null) {
    await tx.execute('UPDATE heddle_group SET seen_ms = $1 WHERE id = $2', [seenMs, id])
    return
  }
  const { rowCount } = await tx.execute(
    'DELETE FROM heddle_group WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM heddle_member_group WHERE grp = $1 AND member <> $2)',
    [id, member],
  )
  if (rowCount === 1) await deleteRowsOf(tx, [id])
}

/** Deletes everything that belongs to deleted groups. */
export async function deleteRowsOf(tx: Queryable, groups: readonly number[]): Promise<void> {
  for (const table of ['heddle_parked', 'heddle_slot', 'heddle_member_group', 'heddle_delivery'])
    await tx.execute(`DELETE FROM ${table} WHERE grp = ANY($1::int[])`, [arrayOf(groups)])
}

/** Moves due rows of owned slots to the end of the order. @returns their groups */
async function promote(tx: Queryable, member: number, dueMs: number): Promise<number[]> {
  const due = await tx.query<{ seq: number; grp: number; slot: number }>(DUE, [member, dueMs])
  if (due.length === 0) return []
  const own = await tx.query<{ grp: number; slot: number }>(LOCK_OWN, [
    member,
    arrayOf(due.map(({ grp }) => Number(grp))),
    arrayOf(due.map(({ slot }) => Number(slot))),
  ])
  const names = new Set(own.map(({ grp, slot }) => `${grp} ${slot}`))
  const seqs = due.flatMap(({ seq, grp, slot }) => (names.has(`${grp} ${slot}`) ? [Number(seq)] : []))
  const rows = await tx.query<{ grp: number }>(PROMOTE, [arrayOf(seqs), dueMs])
  return rows.map(({ grp }) => Number(grp))
}
