// Writes what became of events.
import type { Queryable, SqlValue } from '../../contracts/db.ts'
import type { GroupRow, LogChanges, WaitingDelivery } from '../../transport/log-changes.ts'
import { type LogDatabase, ownTransaction } from '../event-store/database.ts'
import { PositionList, storable } from '../event-store/event-columns.ts'
import { andOwned, requireOwner, WAITS_FOR_GROUP } from './event-rows.ts'

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
async function storeWaiting(tx: Queryable, waiting: readonly WaitingDelivery[]): Promise<void> {
  // A statement may not change a row twice.
  const last = new Map(waiting.map((delivery) => [`${delivery.seq} ${delivery.group}`, delivery]))
  const rows = [...last.values()]
  for (let from = 0; from < rows.length; ) {
    const size = ROW_SIZES.find((each) => each <= rows.length - from)!
    const params: SqlValue[] = []
    for (const { seq, group, attempt, deaths, dueMs, error } of rows.slice(from, from + size))
      params.push(seq, group, attempt, deaths, dueMs, storable(error))
    await tx.execute(UPSERTS.get(size)!, params)
    from += size
  }
  await Promise.all(SPLIT.run(tx, [...new Set(rows.map(({ seq }) => seq))]))
}

/** Deletes deliveries that are done. */
async function deleteDone(tx: Queryable, done: LogChanges['done']): Promise<void> {
  const positions = new Map<string, number[]>()
  for (const { seq, group } of done) {
    const known = positions.get(group)
    if (known === undefined) positions.set(group, [seq])
    else known.push(seq)
  }
  for (const [group, seqs] of positions) await Promise.all(DONE.run(tx, seqs, '', [group]))
}

/** Deletes all deliveries of events. */
async function deleteAllOf(tx: Queryable, events: readonly number[]): Promise<void> {
  await Promise.all(FORGOTTEN.run(tx, events))
}

/** Neighbours that are deleted as a range from so many on. */
const RANGE_MIN = 16

const DELETE = new PositionList('DELETE FROM heddle_event WHERE seq IN')
const RELEASE = new PositionList(`UPDATE heddle_event SET owner = ${WAITS_FOR_GROUP} WHERE seq IN`)

/**
 * Writes what has become of events: alone the usual deletes, which share the commits of the thread, and the rest in one transaction.
 * @param epoch number of this process, or 0: only its own events are changed
 */
export async function writeChanges(db: LogDatabase, changes: LogChanges, epoch: number): Promise<void> {
  const { forget, split, done, waiting, letters, replayed, released, groups } = changes
  const others = [split, done, waiting, letters, replayed, released, groups]
  if (others.every(({ length }) => length === 0)) return deleteEvents(db, forget, epoch)
  await ownTransaction(db, async (tx) => {
    await requireOwner(tx, epoch)
    await storeWaiting(tx, waiting)
    for (const letter of letters) await insertLetter(tx, letter)
    if (letters.length > 0) await tx.execute(DROP_OLD_LETTERS, [])
    for (const { seq, error, letter } of replayed) {
      const outcome = error === null ? 'done' : 'failed'
      await tx.execute(END_REPLAY, [outcome, error, letter, seq])
    }
    if (replayed.length > 0) await tx.execute(DROP_OLD_REPLAYS, [])
    await deleteDone(tx, done)
    await deleteAllOf(tx, split)
    await deleteEvents(tx, forget, epoch)
    await Promise.all(RELEASE.run(tx, released, andOwned(epoch)))
    for (const row of groups) await writeGroup(tx, row)
  })
}

function writeGroup(tx: Queryable, { event, group, seenMs }: GroupRow): Promise<unknown> {
  if (seenMs === null) return tx.execute('DELETE FROM heddle_group WHERE event = $1 AND grp = $2', [event, group])
  return tx.execute(
    `INSERT INTO heddle_group (event, grp, seen_ms) VALUES ($1, $2, $3)
     ON CONFLICT (event, grp) DO UPDATE SET seen_ms = $3`,
    [event, group, seenMs],
  )
}

export async function insertLetter(tx: Queryable, letter: LogChanges['letters'][number]): Promise<void> {
  const { id, eventId, event, group, subscriber, key, envelope, payload, error, attempts, blackBox, bytes, atMs } =
    letter
  const isParked = letter.isParked ? 1 : 0
  await tx.execute(
    `INSERT INTO heddle_dead (id, event_id, event, grp, subscriber, key, envelope, payload, error, attempts, black_box, bytes, at_ms, is_parked)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (id) DO NOTHING`,
    [
      id,
      eventId,
      event,
      group,
      subscriber,
      key,
      envelope,
      payload,
      storable(error),
      attempts,
      blackBox,
      bytes,
      atMs,
      isParked,
    ],
  )
}

async function deleteEvents(to: Queryable, positions: readonly number[], epoch: number): Promise<void> {
  const sorted = Float64Array.from(positions).sort()
  const single: number[] = []
  const deletes: Promise<unknown>[] = []
  for (let from = 0; from < sorted.length; ) {
    let end = from + 1
    while (end < sorted.length && sorted[end]! <= sorted[end - 1]! + 1) end++
    if (end - from >= RANGE_MIN) {
      // Every position of the range is in the list: no other event can be in between.
      deletes.push(
        to.execute(`DELETE FROM heddle_event WHERE seq BETWEEN $1 AND $2${andOwned(epoch)}`, [
          sorted[from]!,
          sorted[end - 1]!,
        ]),
      )
    } else for (let n = from; n < end; n++) single.push(sorted[n]!)
    from = end
  }
  deletes.push(...DELETE.run(to, single, andOwned(epoch)))
  await Promise.all(deletes)
}

/** Letters that are kept; then the oldest are dropped, but for those that others wait for. Their ids grow with time. */
const LETTERS_MAX = 10_000
const DROP_OLD_LETTERS = `DELETE FROM heddle_dead WHERE replay = '' AND is_parked = 0
  AND id <= (SELECT id FROM heddle_dead WHERE replay = '' ORDER BY id DESC LIMIT 1 OFFSET ${LETTERS_MAX})`

/** Replayed letters that are kept. */
const REPLAYS_MAX = 1000
const HAS_ENDED = "replay IN ('done', 'failed')"
const END_REPLAY =
  "UPDATE heddle_dead SET replay = $1, replay_error = $2, replay_letter = $3, is_parked = 0, payload = '' WHERE replay_seq = $4 AND replay = 'running'"
const DROP_OLD_REPLAYS = `DELETE FROM heddle_dead WHERE ${HAS_ENDED}
  AND replayed_ms <= (SELECT replayed_ms FROM heddle_dead WHERE ${HAS_ENDED} ORDER BY replayed_ms DESC LIMIT 1 OFFSET ${REPLAYS_MAX})`
