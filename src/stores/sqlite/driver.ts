import { closeSync, openSync } from 'node:fs'
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
