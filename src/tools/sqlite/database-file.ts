// The file of the database, from outside of SQLite: which one it is, its reserve, the one process that has it, and its log on the disk.

import { randomFillSync } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fdatasync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type BetterSqlite3 from 'better-sqlite3'
import { DbError, HeddleError } from '../../core/errors/catalogue.ts'
import { codeOf, messageOf } from '../../core/errors/description.ts'
import { makeFolder } from '../../core/modules/make-folder.cjs'
import { Database, databaseHeaderOf, HISTORY_APPLICATION_ID, openPrivate } from '../../stores/sqlite/driver.ts'
import { isBusy } from './failure.ts'

/** Bytes that are kept for a full disk: as much as SQLite's log holds before it is copied into the file (1000 pages). */
export const RESERVE_BYTES = 4 * 1_048_576

/** What SQLite keeps beside the database: its log, and the index of the log with the locks of all connections. */
const BESIDE = ['-wal', '-shm']

/** Commits within this, milliseconds, share one look at the files: it costs 5 µs. What they hold is lost with a file that is removed just after them, too. */
const SEEN_MS = 1

/** Two words of 64 bits for each file. */
export const FILE_IDENTITY_BYTES = 16 * (1 + BESIDE.length)

/** The file on the path, seen from outside of SQLite: which one it is, and what is kept beside it. */
export class DatabaseFile {
  readonly path: string
  /** Device and inode of the file that the primary has open, and of those beside it; zero before. Written before the first lane starts. */
  readonly #opened: BigInt64Array
  #paths: readonly string[] | null = null
  /** When it was last looked for before a commit, and was there. */
  #seenMs = Number.NEGATIVE_INFINITY

  /** @param identity FILE_IDENTITY_BYTES, shared by all threads */
  constructor(path: string, identity: SharedArrayBuffer) {
    this.path = path
    this.#opened = new BigInt64Array(identity)
  }

  /** Before SQLite opens it, which would change it. @throws DATABASE_INVALID for what is no database, or one that heddle may remove */
  requireDatabase(): void {
    // Once it is open it must not be: with the descriptor that is closed, the process would lose SQLite's locks.
    if (this.#opened[1] !== 0n) return
    this.#requirePlace()
    let header: ReturnType<typeof databaseHeaderOf>
    try {
      header = databaseHeaderOf(this.path)
    } catch (thrown) {
      // What the system says may pass: it is left to SQLite, which is tried again.
      if (codeOf(thrown) !== undefined) return
      throw new HeddleError('DATABASE_INVALID', `SQLITE_PATH: ${messageOf(thrown)}`)
    }
    if (header?.applicationId === HISTORY_APPLICATION_ID)
      throw new HeddleError('DATABASE_INVALID', `SQLITE_PATH: ${this.path} is the file of a history (HISTORY_PATH)`)
  }

  /** Makes the file where it is missing. @throws DATABASE_INVALID where it cannot be written, or what SQLite keeps beside it */
  #requirePlace(): void {
    const { path } = this
    try {
      makeFolder(dirname(path))
      // The longest name of all that lies beside it.
      statSync(`${this.#reserve}.part`, { throwIfNoEntry: false })
      const found = statSync(path, { throwIfNoEntry: false })
      if (found === undefined) closeSync(openSync(path, 'a', 0o600))
      else if (!found.isFile()) return
      accessSync(path, constants.R_OK | constants.W_OK)
      accessSync(dirname(realpathSync(path)), constants.W_OK | constants.X_OK)
    } catch (thrown) {
      const why = NO_PLACE[codeOf(thrown) ?? '']
      if (why === undefined) return
      const message = `SQLITE_PATH: ${path} cannot hold a database: ${why} (${messageOf(thrown)}). Set SQLITE_PATH to a file in a folder where this user may write`
      throw new HeddleError('DATABASE_INVALID', message)
    }
  }

  /** In the primary, which has just read from it, and holds file and log from then on. */
  remember(): void {
    for (const [at, name] of this.#names().entries()) {
      const { dev, ino } = statSync(name, { bigint: true })
      this.#opened[2 * at] = dev
      this.#opened[2 * at + 1] = ino
    }
  }

  /**
   * False when the file, its log or the index of the log has been removed, or another one has its name: what is written then goes nowhere, or is
   * not locked against other processes.
   */
  isOpenedOne(): boolean {
    if (!this.#is(this.path, 0)) return false
    this.#paths ??= this.#names()
    return this.#paths.every((path, at) => at === 0 || this.#is(path, 2 * at))
  }

  #names(): string[] {
    const real = realpathSync(this.path)
    return [this.path, ...BESIDE.map((suffix) => `${real}${suffix}`)]
  }

  #is(path: string, at: number): boolean {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false })
    return found !== undefined && found.dev === this.#opened[at] && found.ino === this.#opened[at + 1]
  }

  /** Before it is opened, since SQLite would create a new, empty file, and before each commit. @throws DbError `unavailable` */
  requireOpenedOne(): void {
    const nowMs = performance.now()
    if (nowMs < this.#seenMs + SEEN_MS) return
    if (this.#opened[1] !== 0n && !this.isOpenedOne()) throw new DbError('unavailable', REPLACED)
    this.#seenMs = nowMs
  }

  /** True when another process has it open. Call it before this process opens it. */
  isElsewhereOpen(): boolean {
    if (!existsSync(this.path)) return false
    let probe: BetterSqlite3.Database | null = null
    try {
      probe = new Database(this.path, { timeout: 0 })
      probe.pragma('locking_mode = EXCLUSIVE')
      probe.exec('BEGIN EXCLUSIVE; ROLLBACK')
      return false
    } catch (thrown) {
      return isBusy(thrown)
    } finally {
      probe?.close()
    }
  }

  /**
   * Keeps room on the disk, which is given away when the disk is full, so that rows can be deleted. It is kept anew where it is kept already,
   * because that tells whether there is more. @throws when there is no room
   */
  keepReserve(): void {
    if (!this.#isReserveOurs) return
    const part = `${this.#reserve}.part`
    try {
      // Not zeros, for which some file systems keep no room.
      writeFileSync(part, randomFillSync(Buffer.allocUnsafe(RESERVE_BYTES)), { mode: 0o600 })
      renameSync(part, this.#reserve)
    } catch (thrown) {
      rmSync(part, { force: true })
      throw thrown
    }
  }

  giveReserve(): void {
    if (this.#isReserveOurs) rmSync(this.#reserve, { force: true })
  }

  /** Somebody else's file of this name is neither written nor removed: then no room is kept. */
  get #isReserveOurs(): boolean {
    const found = statSync(this.#reserve, { throwIfNoEntry: false })
    return found === undefined || (found.isFile() && found.size === RESERVE_BYTES)
  }

  get #reserve(): string {
    return `${this.path}-reserve`
  }
}

/** What the system says of a place where no file can be made or written. A full disk or too many open files may pass. */
const NO_PLACE: Readonly<Record<string, string>> = {
  ENOENT: 'no file can be made there',
  EEXIST: 'a part of the path is not a folder',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  ENAMETOOLONG: 'its name, or that of a file beside it, is too long',
  ELOOP: 'its links go in a circle',
  EACCES: 'this user may not write there',
  EPERM: 'no file can be made there',
  EROFS: 'the file system is read-only',
  EINVAL: 'the system does not take that name',
  ENXIO: 'it is a device',
  ENODEV: 'it is a device',
  EOPNOTSUPP: 'the file system does not take such files',
  ERR_INVALID_ARG_VALUE: 'the system does not take that name',
}

export const REPLACED =
  'The database file was removed or replaced while it was open, and what is written would go nowhere: put it back, or restart the service'

/**
 * Says that one process has a database file for itself: a lock on a small file beside it, which is free as soon as the process ends, however it
 * ends. Not on the database itself, which its threads share, and which other programs may read.
 * @param path of a database that is there. A link is the file that it leads to
 * @param suffix of the small file: what the claim is for
 * @returns the lock, which is given up by `close`; null when another process has it
 * @throws when the file beside it cannot be made
 */
export function claimFile(path: string, suffix = '-claim'): BetterSqlite3.Database | null {
  const lock = openPrivate(`${realpathSync(path)}${suffix}`, { timeout: 0 })
  try {
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (thrown) {
    lock.close()
    if (isBusy(thrown)) return null
    throw thrown
  }
}

/**
 * Brings committed transactions to the disk (`SQLITE_SYNCHRONOUS=full`).
 *
 * With SQLite's own FULL the thread waits within the commit, and all writers with it, for they need its lock. Here SQLite commits with
 * NORMAL, the lock is released, and the write-ahead log is synced in a thread of libuv before anything is answered. A sync covers all
 * commits that ended before it began, so whatever waits shares the next one. The log is a prefix: what a power cut leaves of it never
 * lacks a commit that a later one has seen. Checkpoints are safe by themselves: NORMAL syncs the log before it copies pages, and the
 * database file before it begins the log anew.
 */
export class StoreSync {
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
