// The file of the history, and its tables.
import { existsSync, realpathSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type BetterSqlite3 from 'better-sqlite3'
import { makeFolder } from '../core/modules/make-folder.cjs'
import { databaseHeaderOf, HISTORY_APPLICATION_ID, openPrivate } from '../stores/sqlite/driver.ts'

/** Another process may be writing. */
const BUSY_MS = 2000

/**
 * Opens the file of the history, and makes it where there is none, or one of another version.
 * @throws where there is no SQLite, the file cannot be written, or it is not a history's: it is then left as it is
 */
export function openHistory(path: string): BetterSqlite3.Database {
  makeFolder(dirname(path))
  // What lies beside a database has the name of the file, not of a link to it.
  const file = existsSync(path) ? realpathSync(path) : path
  const header = databaseHeaderOf(file)
  if (header !== null && header.applicationId !== HISTORY_APPLICATION_ID) throw foreign(file)
  let database = openPrivate(file, { timeout: BUSY_MS })
  const version = database.pragma('user_version', { simple: true })
  if (version !== 0 && version !== TABLES_VERSION) {
    database.close()
    for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true })
    database = openPrivate(file, { timeout: BUSY_MS })
  }
  try {
    database.pragma('auto_vacuum = INCREMENTAL')
    // What is lost in a power cut is the history of a second.
    database.pragma('synchronous = OFF')
    makeTables(database, file)
    // After the tables: the id is in the file itself from the first page on, and never in a log beside it alone.
    database.pragma('journal_mode = WAL')
  } catch (thrown) {
    database.close()
    throw thrown
  }
  return database
}

function makeTables(database: BetterSqlite3.Database, file: string): void {
  database
    .transaction(() => {
      if (database.pragma('user_version', { simple: true }) === TABLES_VERSION) return void database.exec(RUNS_OF_JOBS)
      // Somebody may have written into the file since it was looked at.
      if (database.prepare('SELECT 1 FROM sqlite_master').get() !== undefined) throw foreign(file)
      database.exec(TABLES + RUNS_OF_JOBS)
      database.pragma(`application_id = ${HISTORY_APPLICATION_ID}`)
      database.pragma(`user_version = ${TABLES_VERSION}`)
    })
    .immediate()
}

const foreign = (file: string): Error =>
  new Error(
    `${file} is not a history: it is left as it is. Set HISTORY_PATH to another file, or remove this one if a version before made it`,
  )

/** A file of this version may be older than the index. */
const RUNS_OF_JOBS = "CREATE INDEX IF NOT EXISTS request_job ON request (plugin, route, at_ms) WHERE kind = 'job';"

/** Increased with every change: a file of another version is written anew, since nothing in it is needed. */
export const TABLES_VERSION = 5

export const TABLES = `
CREATE TABLE run (
  id       TEXT PRIMARY KEY,
  replica  TEXT NOT NULL,
  seen_ms  REAL NOT NULL,
  began_ms REAL NOT NULL,
  release  TEXT NOT NULL
);
CREATE TABLE failure (
  kind       TEXT PRIMARY KEY,
  last_ms    REAL NOT NULL,
  began_with TEXT
) WITHOUT ROWID;
CREATE INDEX failure_last ON failure (last_ms);
CREATE TABLE request (
  id       TEXT PRIMARY KEY,
  client_id TEXT,
  kind     TEXT NOT NULL,
  run      TEXT NOT NULL,
  at_ms    REAL NOT NULL,
  ms       REAL,
  status   INTEGER,
  method   TEXT NOT NULL,
  path     TEXT NOT NULL,
  route    TEXT NOT NULL,
  plugin   TEXT NOT NULL,
  lane     INTEGER,
  failed   INTEGER NOT NULL DEFAULT 0,
  error    TEXT,
  user     TEXT
);
CREATE INDEX request_client ON request (client_id, at_ms) WHERE client_id IS NOT NULL;
CREATE INDEX request_at ON request (at_ms);
CREATE INDEX request_user ON request (user, at_ms) WHERE user IS NOT NULL;
CREATE INDEX request_failed ON request (at_ms) WHERE failed = 1;
CREATE TABLE part (
  id         INTEGER PRIMARY KEY,
  request_id TEXT,
  event_id   TEXT,
  at_ms      REAL NOT NULL,
  json       TEXT NOT NULL,
  run        TEXT NOT NULL,
  trace_id   TEXT
);
CREATE INDEX part_request ON part (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX part_event ON part (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX part_trace ON part (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX part_at ON part (at_ms);
CREATE TABLE published (
  event_id TEXT PRIMARY KEY,
  part_id  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX published_part ON published (part_id);
`
