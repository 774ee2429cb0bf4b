import { closeSync, openSync, readSync, statSync } from 'node:fs'

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
