// The tables of the event log.
import type { Queryable } from '../../contracts/db.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'
import { type LogDatabase, ownTransaction } from '../event-store/database.ts'
import { DEAD_PLACE, DELIVERY_TABLES, RENAME_OLD, RUNNING_REPLAYS, takeOver } from '../event-store/store-tables.ts'
import { NO_PROCESS } from './event-rows.ts'

/** Ordering keys fall into so many slots. Of several processes on a server one delivers the events of a slot. */
export const SLOTS = 64

/** The slot of a row's key: null without a key. */
export const SLOT = '(hashtext(key) & 63)'

/**
 * The tables of stored jobs. Times are milliseconds since the epoch.
 *
 * - `heddle_job`: one row a job, `name` is `<plugin>/<job>`. `due_ms`: when it runs next; null: a date that is over. On a file the runs of
 *   `cron` and `every` with `missed: 'skip'` are not written one by one: there `due_ms` is one of their times. `last_due_ms`: the time of
 *   its last run that was written. `fence`: that of the leader that has placed it. `attempts`: how often the run that is due has begun.
 *   `as_of_ms`: since when it is known as it stands. `gone_ms`: since when nobody registers it; null while somebody does.
 * - `heddle_lease`: who may do what one process alone does. The row `beat` is that of the process that fires jobs: `holder` its own random id,
 *   `identity` where it runs, as JSON. `fence` grows with each election.
 */
const JOB_TABLES = [
  `CREATE TABLE IF NOT EXISTS heddle_job (
    name TEXT PRIMARY KEY, spec TEXT NOT NULL, due_ms BIGINT, last_due_ms BIGINT, fence BIGINT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, as_of_ms BIGINT NOT NULL, gone_ms BIGINT)`,
  `CREATE TABLE IF NOT EXISTS heddle_lease (
    name TEXT PRIMARY KEY, holder TEXT NOT NULL, identity TEXT NOT NULL, fence BIGINT NOT NULL, expires_ms BIGINT NOT NULL)`,
]

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** Version of the tables. A release that changes them raises it, and says how the older ones are migrated. */
const VERSIONS = { sqlite: 3, postgres: 2 } as const

/** Processes that start together make the tables at the same time: one of them is refused, and finds them made. */
const MAKE_ATTEMPTS = 5

/**
 * The tables behind effects that happen once. They are part of the event log: made with it, and of its version.
 *
 * - `heddle_inbox`: events that a transactional subscriber (`grp`) has handled: see inbox.ts. `at_ms`: when, milliseconds since the epoch.
 * - `heddle_idempotency`: answers to requests with an `Idempotency-Key`: see idempotency.ts. `scope` is the route and who asks, `print` what is
 *   asked for; `state` is `running` until the answer is stored, then `done`.
 */
function effectTables(dialect: 'sqlite' | 'postgres'): string[] {
  // The rows are hardly more than their key.
  const end = dialect === 'sqlite' ? ' WITHOUT ROWID' : ''
  return [
    `CREATE TABLE IF NOT EXISTS heddle_inbox (
      event_id TEXT NOT NULL, grp TEXT NOT NULL, at_ms BIGINT NOT NULL, PRIMARY KEY (event_id, grp))${end}`,
    `CREATE TABLE IF NOT EXISTS heddle_idempotency (
      scope TEXT NOT NULL, key TEXT NOT NULL, print TEXT NOT NULL, claim TEXT NOT NULL, state TEXT NOT NULL, status INTEGER,
      headers TEXT, body BYTEA, expires_ms BIGINT NOT NULL, PRIMARY KEY (scope, key))`,
    'CREATE INDEX IF NOT EXISTS heddle_idempotency_expires ON heddle_idempotency (expires_ms)',
  ]
}

/** Rows of events and their deliveries, on a server. */
const EVENT_TABLES = [
  `CREATE TABLE IF NOT EXISTS heddle_event (
    seq BIGINT PRIMARY KEY, owner BIGINT NOT NULL, ord BIGINT NOT NULL, recovered INTEGER NOT NULL DEFAULT 0,
    id TEXT NOT NULL, event TEXT NOT NULL, envelope TEXT NOT NULL, payload TEXT NOT NULL, key TEXT,
    due_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL, is_split SMALLINT NOT NULL DEFAULT 0)`,
  'CREATE INDEX IF NOT EXISTS heddle_event_due ON heddle_event (due_ms, seq) WHERE due_ms > 0',
  `CREATE TABLE IF NOT EXISTS heddle_delivery (
    seq BIGINT NOT NULL, grp TEXT NOT NULL, attempt INTEGER NOT NULL, deaths INTEGER NOT NULL, due_ms BIGINT NOT NULL,
    error TEXT NOT NULL, PRIMARY KEY (seq, grp))`,
  `CREATE INDEX IF NOT EXISTS heddle_delivery_absent ON heddle_delivery (grp, seq) WHERE due_ms < 0`,
  `CREATE TABLE IF NOT EXISTS heddle_group (
    event TEXT NOT NULL, grp TEXT NOT NULL, seen_ms BIGINT NOT NULL, PRIMARY KEY (event, grp))`,
]

const SHARED = [
  `CREATE TABLE IF NOT EXISTS heddle_process (
    epoch BIGINT PRIMARY KEY, replica TEXT NOT NULL, identity TEXT NOT NULL, expires_at TIMESTAMPTZ NOT NULL, adopter BIGINT,
    is_clean SMALLINT NOT NULL DEFAULT 0, is_ready SMALLINT NOT NULL DEFAULT 0, knows BIGINT NOT NULL DEFAULT 0)`,
  'CREATE SEQUENCE IF NOT EXISTS heddle_epoch AS INTEGER',
  'CREATE SEQUENCE IF NOT EXISTS heddle_position',
  'CREATE SEQUENCE IF NOT EXISTS heddle_order',
  `CREATE TABLE IF NOT EXISTS heddle_copy (
    reader BIGINT NOT NULL, number BIGINT NOT NULL, id TEXT NOT NULL, event TEXT NOT NULL, envelope TEXT NOT NULL, payload TEXT NOT NULL,
    key TEXT, expires_ms BIGINT NOT NULL, PRIMARY KEY (reader, number))`,
  'CREATE TABLE IF NOT EXISTS heddle_slot (slot INTEGER PRIMARY KEY, holder BIGINT NOT NULL DEFAULT 0, heir BIGINT NOT NULL DEFAULT 0)',
  `INSERT INTO heddle_slot (slot) SELECT generate_series(0, ${SLOTS - 1}) ON CONFLICT (slot) DO NOTHING`,
  `CREATE INDEX IF NOT EXISTS heddle_event_free ON heddle_event (${SLOT}, ord, seq) WHERE owner = ${NO_PROCESS}`,
]

/**
 * The tables of the log, on a server. Those of a file: see store-tables.ts; `heddle_dead` and `heddle_log` are the same.
 *
 * - `heddle_event`: one row an event, however many subscribers it has. `envelope` is JSON: see event-rows.ts. Times are milliseconds since
 *   the epoch; 0: none. With `is_split` it goes to the subscribers that have a row in `heddle_delivery`, and to no other.
 * - `heddle_delivery`: one subscriber (`grp`) of an event that waits for its next attempt while others may be done. With `due_ms` below 0 it waits
 *   for its group to come; with 1 a thread has begun with it before the event expired, with -2 both.
 * - `heddle_group`: the groups that subscribe, or have subscribed in the last days: an event waits for each. `seen_ms`: when a process last had it.
 * - `heddle_dead`: deliveries that have failed for good. With `is_parked` what follows with the same key waits. `original` is the payload before
 *   it was edited. A letter that is replayed is an event again, at `replay_seq`, and stays for what becomes of it: `replay` is `running`, `done` or
 *   `failed`, then with the error and the id of the new letter.
 * - `heddle_log`: the version of the tables, and whether the last process that had them open ended in order.
 *
 * For several processes:
 *
 * - `owner` of an event: the number of the process that delivers it. `recovered`: how many have ended without order while they had it.
 *   0: nobody yet; -1: it waits for a group. `ord` and then `seq` order the events of one key.
 * - `heddle_process`: the processes, with their leases by the server's clock. `adopter`: the one that takes over what this one has left.
 *   `is_ready`: its subscribers are known. `knows`: the highest number among the processes with which it reckons.
 * - `heddle_copy`: broadcast events for other processes (`reader`) than the one that delivers them to the other subscribers.
 * - `heddle_slot`: which process delivers the events of which keys. `heir`: the one that gets the slot as soon as the holder has nothing of it in hand.
 * - `heddle_epoch`: numbers of processes. `heddle_position`: blocks of positions. `heddle_order`: numbers for `ord`.
 */
function statements({ dialect }: LogDatabase): string[] {
  const ofStore = dialect === 'sqlite' ? DELIVERY_TABLES : EVENT_TABLES
  return [
    'CREATE TABLE IF NOT EXISTS heddle_log (name TEXT PRIMARY KEY, value BIGINT NOT NULL)',
    ...ofStore,
    `CREATE TABLE IF NOT EXISTS heddle_dead (
      id TEXT PRIMARY KEY, event_id TEXT NOT NULL, event TEXT NOT NULL, grp TEXT NOT NULL, subscriber TEXT NOT NULL, key TEXT,
      envelope TEXT NOT NULL, payload TEXT NOT NULL, error TEXT NOT NULL, attempts INTEGER NOT NULL, black_box TEXT,
      bytes BIGINT NOT NULL, at_ms BIGINT NOT NULL, is_parked SMALLINT NOT NULL DEFAULT 0, original TEXT,
      replay TEXT NOT NULL DEFAULT '', replay_seq BIGINT NOT NULL DEFAULT 0, replayed_ms BIGINT NOT NULL DEFAULT 0,
      replay_error TEXT, replay_letter TEXT${dialect === 'sqlite' ? `, ${DEAD_PLACE}` : ''})`,
    ...(dialect === 'sqlite' ? [RUNNING_REPLAYS] : []),
    ...effectTables(dialect),
    ...(dialect === 'postgres' ? SHARED : []),
    ...JOB_TABLES,
  ]
}

/**
 * Makes the tables where some are missing, and checks their version. Where all are there it only reads: DDL waits for every transaction
 * that has published and is open, and all publishers wait behind it.
 * @param mayMake DB_AUTO_MIGRATE
 * @param claim called before tables are made or changed. Throws while another process uses them
 * @throws DATABASE_FOREIGN, DbError; an error that says so when they are missing and must not be made, or are of another version
 */
export async function prepareTables(
  db: LogDatabase,
  mayMake: boolean,
  claim: () => Promise<void> = async () => {},
): Promise<void> {
  await db.requireOwn?.()
  const missing = await missingOf(db)
  const wanted = VERSIONS[db.dialect]
  let version = missing.has('heddle_log') ? null : await versionOf(db)
  if (missing.size === 0 && version === wanted) return
  const isOurs =
    version === null || (Number.isSafeInteger(version) && Number(version) >= 1 && Number(version) <= wanted)
  if (isOurs && mayMake) {
    await claim()
    await makeTables(db, version === null ? null : Number(version))
    version = await versionOf(db)
  } else if (isOurs && missing.size > 0) {
    throw new Error(
      'its tables are missing: run the migrations once with DB_AUTO_MIGRATE=true (npm start -- --boot-tool db). Until then tx.publish is refused, and jobs wait',
    )
  }
  if (version === wanted) return
  const isOther = Number.isSafeInteger(version)
  const found = isOther ? `version ${version}` : `no version (heddle_log: ${toJson(version)})`
  const way = isOther
    ? 'start the release that wrote it'
    : `if this release wrote it, UPDATE heddle_log SET value = ${wanted} WHERE name = 'version'`
  throw new Error(`The event log in the database has ${found}, and this release reads version ${wanted}: ${way}`)
}

async function versionOf(db: Queryable): Promise<unknown> {
  const row = await db.queryOne<{ value: unknown }>("SELECT value FROM heddle_log WHERE name = 'version'")
  return row?.value ?? null
}

/** Of a statement that makes something: its name. */
const MADE = /^CREATE (?:TABLE|INDEX|SEQUENCE) IF NOT EXISTS (\w+)/
const IS_MISSING = {
  sqlite: 'NOT EXISTS (SELECT 1 FROM sqlite_master WHERE sqlite_master.name = made.name)',
  postgres: 'to_regclass(name) IS NULL',
} as const

/** Tables, indexes and sequences that are not there. */
async function missingOf(db: LogDatabase): Promise<ReadonlySet<string>> {
  const names = statements(db).flatMap((sql) => MADE.exec(sql)?.slice(1) ?? [])
  const made = names.map((name) => `('${name}')`).join(', ')
  const rows = await db.query<{ name: string }>(
    `WITH made (name) AS (VALUES ${made}) SELECT name FROM made WHERE ${IS_MISSING[db.dialect]}`,
  )
  return new Set(rows.map(({ name }) => name))
}

/** @param from version of the tables that are there; null: none are */
async function makeTables(db: LogDatabase, from: number | null): Promise<void> {
  const wanted = VERSIONS[db.dialect]
  const isOldFile = db.dialect === 'sqlite' && from !== null && from < wanted
  for (let attempt = 1; ; attempt++) {
    try {
      return await ownTransaction(db, async (tx) => {
        if (from === 1 && db.dialect === 'postgres') for (const sql of SHARED_SINCE_1) await tx.execute(sql)
        if (isOldFile) for (const sql of RENAME_OLD) await tx.execute(sql)
        for (const sql of statements(db)) await tx.execute(sql)
        if (isOldFile) await takeOver(tx)
        await tx.execute("INSERT INTO heddle_log (name, value) VALUES ('version', $1) ON CONFLICT (name) DO NOTHING", [
          wanted,
        ])
        // What older versions lack is there now.
        await tx.execute("UPDATE heddle_log SET value = $1 WHERE name = 'version' AND value < $1", [wanted])
      })
    } catch (error) {
      if (attempt === MAKE_ATTEMPTS || !isMadeElsewhere(error)) throw error
    }
  }
}

const isMadeElsewhere = (error: unknown): boolean =>
  isInstance(error, DbError) && (error.kind === 'unique_violation' || error.message.includes('already exists'))

/** Columns that a server's tables of version 1 may lack. */
const SHARED_SINCE_1 = [
  'ALTER TABLE heddle_event ADD COLUMN IF NOT EXISTS ord BIGINT NOT NULL DEFAULT 0',
  `ALTER TABLE heddle_process ADD COLUMN IF NOT EXISTS is_ready SMALLINT NOT NULL DEFAULT 0,
     ADD COLUMN IF NOT EXISTS knows BIGINT NOT NULL DEFAULT 0`,
]
