// Creates and checks the tables of stored events, jobs and effects.
import type { Queryable } from '../../contracts/db.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'
import { cancelTable } from './cancel-notes.ts'
import { ownTransaction, type StoreDatabase } from './database.ts'
import { REPORT_TABLES } from './report-rows.ts'
import { renameOld, SERVER_TABLES, takeOverServer } from './server-tables.ts'
import { DEAD_OF_GROUPS, DEAD_PLACE, DELIVERY_TABLES, RENAME_OLD, RUNNING_REPLAYS, takeOver } from './store-tables.ts'

/**
 * The tables of stored jobs. Times are milliseconds since the epoch.
 *
 * - `heddle_job`: one row a job, `name` is `<plugin>/<job>`. `due_ms`: time of the next run; null: a date in the past. On a file the runs of
 *   `cron` and `every` with `missed: 'skip'` are not written one by one: there `due_ms` is one of their times. `last_due_ms`: time of the
 *   last run written. `fence`: fence of the leader that placed it. `attempts`: number of starts of the due run.
 *   `as_of_ms`: time since which it has its current form. `gone_ms`: time since which it is not registered; null while it is.
 * - `heddle_job_ask`: runs that a process asks of the one that runs the jobs, see job-asks.ts. `id`: of the run. `answer`: JSON, null until it is taken.
 * - `heddle_job_run`: the last runs of each job as JSON, on a server, see noted-runs.ts.
 * - `heddle_lease`: holders of exclusive work. The row `beat` belongs to the process that fires jobs: `holder` is its own random id,
 *   `identity` its location, as JSON. `fence` grows with each election.
 */
const JOB_TABLES = [
  `CREATE TABLE IF NOT EXISTS heddle_job (
    name TEXT PRIMARY KEY, spec TEXT NOT NULL, due_ms BIGINT, last_due_ms BIGINT, fence BIGINT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, as_of_ms BIGINT NOT NULL, gone_ms BIGINT)`,
  `CREATE TABLE IF NOT EXISTS heddle_job_ask (
    id TEXT PRIMARY KEY, job TEXT NOT NULL, asked_by TEXT NOT NULL, at_ms BIGINT NOT NULL, answer TEXT)`,
  `CREATE TABLE IF NOT EXISTS heddle_job_run (
    job TEXT PRIMARY KEY, fence BIGINT NOT NULL, runs TEXT NOT NULL)`,
  `CREATE TABLE IF NOT EXISTS heddle_lease (
    name TEXT PRIMARY KEY, holder TEXT NOT NULL, identity TEXT NOT NULL, fence BIGINT NOT NULL, expires_ms BIGINT NOT NULL)`,
]

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** Version of the tables. A release with other tables raises it, and defines the migration of older ones. */
const VERSION = 3

/** Maximum attempts: if several processes create the tables at once, one of them is refused and finds them created. */
const MAKE_ATTEMPTS = 5

/**
 * The tables behind effects that happen once. They are created with the event store, and share its version.
 *
 * - `heddle_inbox`: events handled by a transactional subscriber (`grp`): see inbox.ts. `at_ms`: time of the commit, milliseconds since the epoch.
 * - `heddle_idempotency`: answers to requests with an `Idempotency-Key`: see idempotency.ts. `scope` is the route and the caller, `print` a digest
 *   of the request; `state` is `running` until the answer is stored, then `done`.
 */
function effectTables(dialect: 'sqlite' | 'postgres'): string[] {
  return [
    `CREATE TABLE IF NOT EXISTS heddle_inbox (
      event_id TEXT NOT NULL, grp TEXT NOT NULL, at_ms BIGINT NOT NULL, PRIMARY KEY (event_id, grp))${dialect === 'sqlite' ? ' WITHOUT ROWID' : ''}`,
    `CREATE TABLE IF NOT EXISTS heddle_idempotency (
      scope TEXT NOT NULL, key TEXT NOT NULL, print TEXT NOT NULL, claim TEXT NOT NULL, state TEXT NOT NULL, status INTEGER,
      headers TEXT, body BYTEA, expires_ms BIGINT NOT NULL, PRIMARY KEY (scope, key))`,
    'CREATE INDEX IF NOT EXISTS heddle_idempotency_expires ON heddle_idempotency (expires_ms)',
  ]
}

/**
 * The tables of the event store, see store-tables.ts and server-tables.ts, and beside them:
 *
 * - `heddle_dead`: deliveries that failed for good. With `is_parked` it blocks its key. `original` is the payload before
 *   the edit. A replayed dead letter is a delivery again, `replay_seq`, and its row stays for the outcome: `replay` is `running`, `done`
 *   or `failed`, then with the error and the id of the new dead letter.
 * - `heddle_cancel`: see cancel-rows.ts. `heddle_report`, `heddle_chunk`: see report-rows.ts. `heddle_limit`: how much of
 *   each limit is used, on a server: see rate-window.ts. `until_ms`: until when it says something, by the clock of the database.
 * - `heddle_permit`, on a server: how many handlers of a subscriber (`name`) run in a process, and since when it waits for more;
 *   `asked_ms`: when it last asked.
 * - `heddle_paused`: subscribers that are paused, by their names, and since when.
 * - `heddle_log`: the version of the tables, and whether the last process with the file open ended in order.
 */
const PERMIT_TABLE = `CREATE TABLE IF NOT EXISTS heddle_permit (name TEXT NOT NULL, member BIGINT NOT NULL, held INTEGER NOT NULL,
  since_ms BIGINT NOT NULL, asked_ms BIGINT NOT NULL, PRIMARY KEY (name, member))`

function statements({ dialect }: StoreDatabase): string[] {
  const ofStore = dialect === 'sqlite' ? DELIVERY_TABLES : SERVER_TABLES
  return [
    'CREATE TABLE IF NOT EXISTS heddle_log (name TEXT PRIMARY KEY, value BIGINT NOT NULL)',
    ...ofStore,
    `CREATE TABLE IF NOT EXISTS heddle_dead (
      id TEXT PRIMARY KEY, event_id TEXT NOT NULL, event TEXT NOT NULL, grp TEXT NOT NULL, subscriber TEXT NOT NULL, key TEXT,
      envelope TEXT NOT NULL, payload TEXT NOT NULL, error TEXT NOT NULL, attempts INTEGER NOT NULL, black_box TEXT,
      bytes BIGINT NOT NULL, at_ms BIGINT NOT NULL, is_parked SMALLINT NOT NULL DEFAULT 0, original TEXT,
      replay TEXT NOT NULL DEFAULT '', replay_seq BIGINT NOT NULL DEFAULT 0, replayed_ms BIGINT NOT NULL DEFAULT 0,
      replay_error TEXT, replay_letter TEXT, ${DEAD_PLACE})`,
    RUNNING_REPLAYS,
    DEAD_OF_GROUPS,
    cancelTable(dialect),
    ...REPORT_TABLES,
    ...(dialect === 'postgres' ? [PERMIT_TABLE] : []),
    'CREATE TABLE IF NOT EXISTS heddle_limit (name TEXT PRIMARY KEY, state TEXT NOT NULL, until_ms BIGINT NOT NULL)',
    'CREATE TABLE IF NOT EXISTS heddle_paused (event TEXT NOT NULL, grp TEXT NOT NULL, since_ms BIGINT NOT NULL, PRIMARY KEY (event, grp))',
    ...effectTables(dialect),
    ...JOB_TABLES,
  ]
}

/**
 * Creates missing tables, and checks their version. On a current database it only reads: DDL waits for every open transaction
 * that has published, and blocks all publishers meanwhile.
 * @param mayMake DB_AUTO_MIGRATE
 * @param claim called before tables are made or changed. Throws while another process uses them
 * @throws DATABASE_FOREIGN, DbError; an error with the reason if they are missing and must not be created, or are of another version
 */
export async function prepareTables(
  db: StoreDatabase,
  mayMake: boolean,
  claim: () => Promise<void> = async () => {},
): Promise<void> {
  await db.requireOwn?.()
  const missing = await missingOf(db)
  const wanted = VERSION
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
  throw new Error(`The event store in the database has ${found}, and this release reads version ${wanted}: ${way}`)
}

async function versionOf(db: Queryable): Promise<unknown> {
  const row = await db.queryOne<{ value: unknown }>("SELECT value FROM heddle_log WHERE name = 'version'")
  return row?.value ?? null
}

/** Name in a CREATE statement. */
const MADE = /^CREATE (?:UNIQUE )?(?:TABLE|INDEX|SEQUENCE) IF NOT EXISTS (\w+)/
const IS_MISSING = {
  sqlite: 'NOT EXISTS (SELECT 1 FROM sqlite_master WHERE sqlite_master.name = made.name)',
  postgres: 'to_regclass(name) IS NULL',
} as const

/** Returns the missing tables, indexes and sequences. */
async function missingOf(db: StoreDatabase): Promise<ReadonlySet<string>> {
  const names = statements(db).flatMap((sql) => MADE.exec(sql)?.slice(1) ?? [])
  const made = names.map((name) => `('${name}')`).join(', ')
  const rows = await db.query<{ name: string }>(
    `WITH made (name) AS (VALUES ${made}) SELECT name FROM made WHERE ${IS_MISSING[db.dialect]}`,
  )
  return new Set(rows.map(({ name }) => name))
}

/** @param from version of the existing tables; null: none */
async function makeTables(db: StoreDatabase, from: number | null): Promise<void> {
  const wanted = VERSION
  const isOld = from !== null && from < wanted
  const isFile = db.dialect === 'sqlite'
  for (let attempt = 1; ; attempt++) {
    try {
      return await ownTransaction(db, async (tx) => {
        if (isOld && isFile) for (const sql of RENAME_OLD) await tx.execute(sql)
        const isTakenOver = isOld && !isFile && (await renameOld(tx, wanted))
        if (from === wanted) await addNewColumns(tx, db.dialect)
        for (const sql of statements(db)) await tx.execute(sql)
        if (isOld && isFile) await takeOver(tx)
        if (isTakenOver) await takeOverServer(tx)
        await tx.execute("INSERT INTO heddle_log (name, value) VALUES ('version', $1) ON CONFLICT (name) DO NOTHING", [
          wanted,
        ])
        // The columns older versions lack exist now.
        await tx.execute("UPDATE heddle_log SET value = $1 WHERE name = 'version' AND value < $1", [wanted])
      })
    } catch (error) {
      if (attempt === MAKE_ATTEMPTS || !isMadeElsewhere(error)) throw error
    }
  }
}

/** Columns that tables of version 3 may be too old for. Processes of a release that does not know them may go on. */
const NEW_COLUMNS = [
  ['heddle_delivery', 'uniq', 'TEXT'],
  ['heddle_delivery', 'share', 'TEXT'],
  ['heddle_group', 'has_share', 'INTEGER NOT NULL DEFAULT 0'],
] as const

async function addNewColumns(tx: Queryable, dialect: StoreDatabase['dialect']): Promise<void> {
  // heddle_delivery_shared is there instead.
  await tx.execute('DROP INDEX IF EXISTS heddle_delivery_share')
  for (const [table, column, type] of NEW_COLUMNS) {
    if (dialect === 'postgres') {
      await tx.execute(`ALTER TABLE IF EXISTS ${table} ADD COLUMN IF NOT EXISTS ${column} ${type}`)
      continue
    }
    const columns = await tx.query<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`)
    if (columns.length > 0 && !columns.some(({ name }) => name === column))
      await tx.execute(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`)
  }
}

const isMadeElsewhere = (error: unknown): boolean =>
  isInstance(error, DbError) && (error.kind === 'unique_violation' || error.message.includes('already exists'))
