// Brings commits to the disk, many at a time.
import { closeSync, fdatasync, openSync, realpathSync } from 'node:fs'
import { DbError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'

/**
 * Brings committed transactions to the disk (`SQLITE_SYNCHRONOUS=full`).
 *
 * With SQLite's own FULL the thread waits within the commit, and all writers with it, for they need its lock. Here SQLite commits with
 * NORMAL, the lock is released, and the write-ahead log is synced in a thread of libuv before anything is answered. A sync covers all
 * commits that ended before it began, so whatever waits shares the next one. The log is a prefix: what a power cut leaves of it never
 * lacks a commit that a later one has seen. Checkpoints are safe by themselves: NORMAL syncs the log before it copies pages, and the
 * database file before it begins the log anew.
 */
export class LogSync {
  readonly #path: string
  /** The log is opened once: SQLite keeps it as long as one connection is open. It has no locks that a close would drop. */
  #file: number | null = null
  #running: Promise<void> | null = null
  /** Begins when the running one has ended. */
  #next: Promise<void> | null = null

  /** @param path of the database */
  constructor(path: string) {
    this.#path = path
  }

  get isBusy(): boolean {
    return this.#running !== null
  }

  /** Everything that is committed before the call is on the disk. @throws DbError `unavailable` */
  done(): Promise<void> {
    if (this.#running === null) {
      this.#running = this.#sync().finally(() => {
        this.#running = null
      })
      return this.#running
    }
    // The running one may have begun before this commit.
    this.#next ??= this.#running.then(nothing, nothing).then(() => {
      this.#next = null
      return this.done()
    })
    return this.#next
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }

  #sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      const failed = (thrown: unknown): void => {
        const message = `The write may be lost in a power cut: its log did not reach the disk: ${messageOf(thrown)}`
        reject(new DbError('unavailable', message, { cause: thrown }))
      }
      try {
        this.#file ??= openSync(`${realpathSync(this.#path)}-wal`, 'r+')
        fdatasync(this.#file, (error) => (error === null ? resolve() : failed(error)))
      } catch (thrown) {
        failed(thrown)
      }
    })
  }
}

function nothing(): void {}
