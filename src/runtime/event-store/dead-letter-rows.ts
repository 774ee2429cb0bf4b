// Writes dead letters and the outcomes of their replays.
import type { Queryable } from '../../contracts/db.ts'
import type { ReplayEnd, StoreChanges } from '../../transport/store-changes.ts'
import { storable } from './event-columns.ts'

/** Maximum number of dead letters; above it the oldest are dropped, except if they block a key. Ids grow with time. */
const KEPT_MAX = 10_000
const DROP_OLD = `DELETE FROM heddle_dead WHERE replay = '' AND is_parked = 0
  AND id <= (SELECT id FROM heddle_dead WHERE replay = '' ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_MAX})`
const INSERT = `INSERT INTO heddle_dead (id, event_id, event, grp, subscriber, key, envelope, payload, error, attempts, black_box, bytes, at_ms, is_parked, place)
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15 WHERE CAST($16 AS BIGINT) = 0 OR EXISTS (SELECT 1 FROM heddle_delivery WHERE seq = CAST($16 AS BIGINT))
    OR NOT EXISTS (SELECT 1 FROM heddle_group WHERE event = $3 AND grp = $4)
  ON CONFLICT (id) DO NOTHING`
const PARK = `INSERT INTO heddle_parked (grp, key, dead_letter) SELECT id, $1, $2 FROM heddle_group WHERE event = $3 AND grp = $4 AND kind = 'group'
  ON CONFLICT DO NOTHING`

const IS_PARKED = 'SELECT 1 AS found FROM heddle_parked WHERE dead_letter = $1'

/** Maximum number of replayed dead letters. */
const REPLAYS_MAX = 1000
const HAS_ENDED = "replay IN ('done', 'failed')"
const END_REPLAY =
  "UPDATE heddle_dead SET replay = $1, replay_error = $2, replay_letter = $3, is_parked = 0, payload = '' WHERE replay_seq = $4 AND replay = 'running'"
const DROP_OLD_REPLAYS = `DELETE FROM heddle_dead WHERE ${HAS_ENDED}
  AND replayed_ms <= (SELECT replayed_ms FROM heddle_dead WHERE ${HAS_ENDED} ORDER BY replayed_ms DESC LIMIT 1 OFFSET ${REPLAYS_MAX})`

/**
 * Replaces rows by dead letters, and blocks keys. After a lost answer it runs again: the dead letter may be replayed or deleted by then, but its
 * row is gone, and nothing happens. The rows of a deleted group are gone as well: failures of its last handlers are kept.
 * @returns those of them that were to block keys, and were not stored now
 */
export async function insertDeadLetters(
  tx: Queryable,
  deadLetters: StoreChanges['deadLetters'],
  park = PARK,
): Promise<string[]> {
  const left: string[] = []
  for (const { row, seq, place } of deadLetters) {
    const { id, eventId, event, group, subscriber, key, envelope, payload, error, attempts, blackBox, bytes, atMs } =
      row
    const isParked = row.isParked ? 1 : 0
    const texts = [id, eventId, event, group, subscriber].map(storable)
    const values = [
      ...texts,
      key,
      storable(envelope),
      storable(payload),
      storable(error),
      attempts,
      blackBox,
      bytes,
      atMs,
    ]
    const { rowCount } = await tx.execute(INSERT, [...values, isParked, place, seq])
    if (rowCount === 0) {
      if (row.isParked) left.push(id)
      continue
    }
    if (seq > 0) await tx.execute('DELETE FROM heddle_delivery WHERE seq = $1', [seq])
    if (row.isParked) await tx.execute(park, [key, id, event, group])
  }
  if (deadLetters.length > 0) await tx.execute(DROP_OLD)
  return left
}

/** Returns the ones of these dead letters that block no key. */
export async function unblocking(tx: Queryable, deadLetters: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const id of deadLetters) if ((await tx.queryOne(IS_PARKED, [id])) === null) found.push(id)
  return found
}

export async function endReplays(tx: Queryable, replayed: readonly ReplayEnd[]): Promise<void> {
  for (const { seq, error, letter } of replayed)
    await tx.execute(END_REPLAY, [error === null ? 'done' : 'failed', error && storable(error), letter, seq])
  if (replayed.length > 0) await tx.execute(DROP_OLD_REPLAYS)
}
