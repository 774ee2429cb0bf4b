// The tables of the event store on SQLite, and the takeover of rows of older versions.
import type { Queryable } from '../../contracts/db.ts'
import { ALL_GROUPS } from './delivery-rows.ts'

/** For replayed and deleted dead letters, which unblock their keys: there may be many. */
export const BLOCKING_DEAD_LETTERS = 'CREATE INDEX IF NOT EXISTS heddle_parked_letter ON heddle_parked (dead_letter)'

/** What a row is alone with in its group: see unique-rows.ts. Rows without a group yet are alone among each other. Rows of other releases have none. */
export const ALONE = '(uniq, (CASE WHEN grp < 0 THEN 0 ELSE grp END)) WHERE uniq IS NOT NULL'
export const UNIQUE_ROWS = `CREATE UNIQUE INDEX IF NOT EXISTS heddle_delivery_unique ON heddle_delivery ${ALONE}`

/**
 * Of ready rows, in statements about shares. Not `due_ms = 0`: a server without statistics could not tell the index of shares from that of the order,
 * by which each of these statements would read the whole group.
 */
export const IS_READY_OF_SHARE = 'due_ms < 1'
/** Ready rows of those who take turns. */
export const SHARED_ROWS = `CREATE INDEX IF NOT EXISTS heddle_delivery_shared ON heddle_delivery (grp, share, coalesce(place, seq)) WHERE share IS NOT NULL AND ${IS_READY_OF_SHARE}`
/** For the list of queues: rows between two attempts, and dead letters of each subscriber. */
export const RETRYING_ROWS =
  'CREATE INDEX IF NOT EXISTS heddle_delivery_retrying ON heddle_delivery (grp, due_ms, seq) WHERE due_ms > 0 AND attempt > 1'
export const DEAD_OF_GROUPS =
  "CREATE INDEX IF NOT EXISTS heddle_dead_group ON heddle_dead (event, grp) WHERE replay = ''"

/**
 * The tables of the event store. Times are milliseconds since the epoch; 0: none.
 *
 * - `heddle_delivery`: one event for one group. `seq`: number of the row, and its place in the order of the group unless it has a `place` of its own:
 *   the place of a replayed dead letter, or of an event stored before its groups were known. `due_ms` above 0: the row waits outside of the order and
 *   gets a new row at the end when it is due. `retry_ms`: time of the next attempt of a row that keeps its place. `begun`: a handler has begun
 *   it, so it no longer expires. `thread`: the publisher. `crashes`: crashes of processes that may have had it in hand. `deaths`: known
 *   crashes of threads and processes during the delivery. `uniq`: see unique-rows.ts. `share`: whose the
 *   event is to the group, see shares.ts; null: nobody asks. Of a row without groups yet: of all groups, as JSON.
 * - `heddle_group`: the subscribed groups. A published event makes a row for each group of its name, in the same commit. `kind` is `group`, `broadcast` or
 *   `temporary`; the last two end with their process. `seen_ms`: last time a process had it. `has_share`: 1 if each
 *   new row has a `share`.
 * - `heddle_parked`: keys of groups blocked by a dead letter.
 */
export const DELIVERY_TABLES = [
  `CREATE TABLE IF NOT EXISTS heddle_group (
    id INTEGER PRIMARY KEY, event TEXT NOT NULL, grp TEXT NOT NULL, kind TEXT NOT NULL DEFAULT 'group', seen_ms BIGINT NOT NULL,
    has_share INTEGER NOT NULL DEFAULT 0, UNIQUE (event, grp, kind))`,
  `CREATE TABLE IF NOT EXISTS heddle_delivery (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, place INTEGER, grp INTEGER NOT NULL, thread INTEGER NOT NULL, event_id TEXT NOT NULL, event TEXT NOT NULL,
    envelope TEXT NOT NULL, payload TEXT NOT NULL, key TEXT, due_ms BIGINT NOT NULL DEFAULT 0, expires_ms BIGINT NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 1, deaths INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '',
    begun SMALLINT NOT NULL DEFAULT 0, retry_ms BIGINT NOT NULL DEFAULT 0, crashes INTEGER NOT NULL DEFAULT 0, uniq TEXT, share TEXT)`,
  'CREATE INDEX IF NOT EXISTS heddle_delivery_order ON heddle_delivery (grp, coalesce(place, seq)) WHERE due_ms = 0',
  'CREATE INDEX IF NOT EXISTS heddle_delivery_unassigned ON heddle_delivery (seq) WHERE grp = 0',
  'CREATE INDEX IF NOT EXISTS heddle_delivery_due ON heddle_delivery (due_ms, seq) WHERE due_ms > 0',
  UNIQUE_ROWS,
  SHARED_ROWS,
  'CREATE INDEX IF NOT EXISTS heddle_delivery_later ON heddle_delivery (grp, due_ms, seq) WHERE due_ms > 0',
  RETRYING_ROWS,
  'CREATE INDEX IF NOT EXISTS heddle_delivery_key ON heddle_delivery (grp, key, coalesce(place, seq)) WHERE key IS NOT NULL AND due_ms = 0',
  `CREATE TABLE IF NOT EXISTS heddle_parked (
    grp INTEGER NOT NULL, key TEXT NOT NULL, dead_letter TEXT NOT NULL, PRIMARY KEY (grp, key, dead_letter)) WITHOUT ROWID`,
  BLOCKING_DEAD_LETTERS,
]

/** Column of `heddle_dead`: the place of the delivery in the order of its group, used again by its replay; 0: none. */
export const DEAD_PLACE = 'place BIGINT NOT NULL DEFAULT 0'

/** There may be many dead letters, and few are replayed. */
export const RUNNING_REPLAYS =
  "CREATE INDEX IF NOT EXISTS heddle_dead_running ON heddle_dead (replay_seq) WHERE replay = 'running'"

/** Rows taken over get numbers from here on: older dead letters have their places below. */
export const FIRST_SEQ = 1 << 24

/** A retry of an event with a key: later rows of the key wait. */
export const KEEPS_PLACE = '(e.key IS NOT NULL AND d.attempt > 1)'

const DELIVERY = 'grp, thread, event_id, event, envelope, payload, key, due_ms, expires_ms'

/** Renames tables of versions 1 and 2, before new tables of the same names are made. Version 1 may lack some. */
export const RENAME_OLD = [
  `CREATE TABLE IF NOT EXISTS heddle_delivery (
    seq BIGINT NOT NULL, grp TEXT NOT NULL, attempt INTEGER NOT NULL, deaths INTEGER NOT NULL, due_ms BIGINT NOT NULL,
    error TEXT NOT NULL, PRIMARY KEY (seq, grp))`,
  'CREATE TABLE IF NOT EXISTS heddle_group (event TEXT NOT NULL, grp TEXT NOT NULL, seen_ms BIGINT NOT NULL, PRIMARY KEY (event, grp))',
  'DROP INDEX IF EXISTS heddle_delivery_absent',
  'DROP INDEX IF EXISTS heddle_event_due',
  'ALTER TABLE heddle_delivery RENAME TO heddle_delivery_2',
  'ALTER TABLE heddle_group RENAME TO heddle_group_2',
]

/** Copies the rows of versions 1 and 2 into the new tables, and drops the old ones. */
export async function takeOver(tx: Queryable): Promise<void> {
  await tx.execute(`ALTER TABLE heddle_dead ADD COLUMN ${DEAD_PLACE}`)
  await tx.execute('INSERT INTO heddle_group (event, grp, seen_ms) SELECT event, grp, seen_ms FROM heddle_group_2')
  // Groups of deliveries without a row in heddle_group.
  await tx.execute(
    `INSERT INTO heddle_group (event, grp, seen_ms) SELECT DISTINCT e.event, d.grp, (SELECT coalesce(max(seen_ms), 0) FROM heddle_group_2)
     FROM heddle_delivery_2 AS d JOIN heddle_event AS e ON e.seq = d.seq WHERE true ON CONFLICT (event, grp, kind) DO NOTHING`,
  )
  await tx.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('heddle_delivery', $1)", [FIRST_SEQ])
  // Due times below 0 belong to absent groups, 1 and -2 to started deliveries.
  // A retry of an event with a key keeps its place. Events without deliveries are for all groups, or for the message broker.
  await tx.execute(
    `INSERT INTO heddle_delivery (${DELIVERY}, attempt, deaths, error, begun, retry_ms)
     SELECT coalesce(g.id, ${ALL_GROUPS}), 0, e.id, e.event, e.envelope, e.payload, e.key,
       CASE WHEN d.seq IS NULL THEN e.due_ms WHEN d.due_ms > 1 AND NOT ${KEEPS_PLACE} THEN d.due_ms ELSE 0 END, e.expires_ms,
       coalesce(d.attempt, 1), coalesce(d.deaths, 0), coalesce(d.error, ''), coalesce(d.due_ms IN (1, -2), 0),
       CASE WHEN d.due_ms > 1 AND ${KEEPS_PLACE} THEN d.due_ms ELSE 0 END
     FROM heddle_event AS e LEFT JOIN heddle_delivery_2 AS d ON d.seq = e.seq LEFT JOIN heddle_group AS g ON g.event = e.event AND g.grp = d.grp
     WHERE e.is_split = 0 OR d.seq IS NOT NULL ORDER BY e.seq`,
  )
  await tx.execute(
    `UPDATE heddle_dead SET replay_seq = coalesce((SELECT n.seq FROM heddle_event AS e JOIN heddle_delivery AS n ON n.event_id = e.id
       JOIN heddle_group AS g ON g.id = n.grp AND g.grp = heddle_dead.grp WHERE e.seq = heddle_dead.replay_seq), 0) WHERE replay = 'running'`,
  )
  // Rows behind a replay have places from FIRST_SEQ on.
  await tx.execute(
    `UPDATE heddle_delivery SET place = (SELECT min(rowid) FROM heddle_dead WHERE replay = 'running' AND replay_seq = heddle_delivery.seq)
     WHERE seq IN (SELECT replay_seq FROM heddle_dead WHERE replay = 'running')`,
  )
  await tx.execute("UPDATE heddle_dead SET place = rowid WHERE replay = ''")
  await tx.execute(
    `INSERT INTO heddle_parked (grp, key, dead_letter) SELECT g.id, d.key, d.id FROM heddle_dead AS d
     JOIN heddle_group AS g ON g.event = d.event AND g.grp = d.grp WHERE d.is_parked = 1 AND d.replay = '' AND d.key IS NOT NULL`,
  )
  for (const table of ['heddle_delivery_2', 'heddle_group_2', 'heddle_event']) await tx.execute(`DROP TABLE ${table}`)
}
