import { realpathSync } from 'node:fs'
import type BetterSqlite3 from 'better-sqlite3'
import { openPrivate } from '../../stores/sqlite/driver.ts'
import { isBusy } from './failure.ts'

/**
 * Says that one process has a database file for itself: a lock on a small file beside it, which is free as soon as the process ends, however it
 * ends. Not on the database itself, which its threads share, and which other programs may read.
 */
export class FileClaim {
  readonly #lock: BetterSqlite3.Database

  private constructor(lock: BetterSqlite3.Database) {
    this.#lock = lock
  }

  /**
   * @param path of a database that is there. A link is the file that it leads to
   * @returns null when another process has it
   * @throws when the file beside it cannot be made
   */
  static take(path: string): FileClaim | null {
    const lock = openPrivate(`${realpathSync(path)}-claim`, { timeout: 0 })
    try {
      lock.exec('BEGIN EXCLUSIVE')
      return new FileClaim(lock)
    } catch (thrown) {
      lock.close()
      if (isBusy(thrown)) return null
      throw thrown
    }
  }

  release(): void {
    this.#lock.close()
  }
}
