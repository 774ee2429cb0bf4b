// The driver of SQLite, how a file is opened with it, and what a file says of itself before.
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import type BetterSqlite3 from 'better-sqlite3'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'

const require = createRequire(import.meta.url)

/** better-sqlite3, whose package has its binaries. @throws TOOL_UNAVAILABLE when it does not load */
function load(): typeof BetterSqlite3 {
  try {
    const Database = require('better-sqlite3') as typeof BetterSqlite3
    // The package loads its binary with the first database.
    new Database(':memory:').close()
    return Database
  } catch (thrown) {
    const fault = messageOf(thrown).split('\n')[0]
    throw new HeddleError('TOOL_UNAVAILABLE', `better-sqlite3 does not load (${fault}). Install the packages again`)
  }
}

export const Database: typeof BetterSqlite3 = load()

/**
 * Opens a file, and makes it for its user alone where it is not there yet. SQLite gives the files beside it the same rights. One that is there must
 * not be opened in any other way: with each descriptor that is closed, a process loses SQLite's locks on the file.
 */
export function openPrivate(path: string, options: BetterSqlite3.Options): BetterSqlite3.Database {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch {
    // It is there, or cannot be made, which SQLite says.
  }
  return new Database(path, options)
}

/** Stands in the file of a history of heddle, as `PRAGMA application_id`: "hdlh". */
export const HISTORY_APPLICATION_ID = 0x68646c68

const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'
const SCHEMA_COOKIE_BYTE = 40
const USER_VERSION_BYTE = 60
const APPLICATION_ID_BYTE = 68

/**
 * What a file says of itself, read without SQLite, which would write into a database and beside it. Not for one that this process has open. Source: https://sqlite.org/fileformat.html#the_database_header
 * @returns null where there is no file, or an empty one, from which SQLite makes a database, or one that another process is making: it has no table yet
 * @throws Error where it is no file or no database
 */
export function databaseHeaderOf(path: string): { applicationId: number } | null {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return null
  // A pipe would block until somebody writes, and a device has no end.
  if (!found.isFile()) throw new Error(`${path} is not a file`)
  if (found.size === 0) return null
  const bytes = Buffer.alloc(HEADER_BYTES)
  const fd = openSync(path, 'r')
  try {
    readSync(fd, bytes, 0, HEADER_BYTES, 0)
  } finally {
    closeSync(fd)
  }
  if (bytes.toString('latin1', 0, MAGIC.length) !== MAGIC) throw new Error(`${path} is not a database of SQLite`)
  const written = [SCHEMA_COOKIE_BYTE, USER_VERSION_BYTE, APPLICATION_ID_BYTE].some((at) => bytes.readInt32BE(at) !== 0)
  return written ? { applicationId: bytes.readInt32BE(APPLICATION_ID_BYTE) } : null
}
