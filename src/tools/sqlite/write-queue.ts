// The order of a thread's writes, and who may write.
import { setTimeout as pause } from 'node:timers/promises'
import type { CausalContext } from '../../contracts/tracing.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { MAX_WAITING, WAIT_MS } from '../../stores/sql/database.ts'
import type { WriteLock } from '../../transport/memory/write-lock.ts'
import type { SqliteConnection } from './connection.ts'
import type { StoreSync } from './database-file.ts'
import { isBusy, toDbError } from './failure.ts'
import { ProcessSession, type SendOrder } from './heavy-statements.ts'
import type { Exclusive, Item, Transaction } from './queued.ts'
import { type Front, finish, type Late, MAX_ITEMS, type Settle, SharedCommit } from './shared-commit.ts'
import { endOf, PULSE_MS, stoppedRefused } from './transaction.ts'

/** Longest pause between two attempts while another process holds SQLite's lock, in milliseconds. */
const MAX_PAUSE_MS = 25
/** A transaction of a lane in which something was stopped has this long to send a statement or to end, milliseconds: perhaps it was the one. */
const STOPPED_IDLE_MS = 1000

type Blocker = 'transaction' | 'thread' | 'process'

interface QueueOptions {
  readonly lock: WriteLock
  /** For writes by themselves. */
  readonly connection: () => SqliteConnection
  /** For commits with a transaction in them, which reads of this thread must not see before they are committed. */
  readonly transactions: () => SqliteConnection
  /** What a commit waits for before it is answered; null: for nothing. */
  readonly storeSync: StoreSync | null
  /** Has a heavy statement run in a process. */
  readonly send: SendOrder
}

/** The writes and transactions of one thread, in the order in which they were issued. Each thread has one queue. */
export class WriteQueue {
  readonly #options: QueueOptions
  readonly #lock: WriteLock
  readonly #storeSync: StoreSync | null
  /** Taken from the front and not yet settled. */
  #takenCount = 0
  #items: Item[] = []
  #draining = false
  #closed = false
  /** What the oldest item waits for; null when it need not wait. */
  #blocker: Blocker | null = null
  #expiry: NodeJS.Timeout | null = null
  #busyCount = 0
  /** What runs under the lock; null while nothing does. */
  #commit: SharedCommit | null = null
  #late: Late | null = null
  #isGivenUp = false

  constructor(options: QueueOptions) {
    this.#options = options
    this.#lock = options.lock
    this.#storeSync = options.storeSync
  }

  get length(): number {
    return this.#items.length + this.#takenCount
  }

  push(item: Item): void {
    if (this.#closed) {
      item.reject(new DbError('unavailable', 'The database is closed'))
      return
    }
    if (this.#items.length >= MAX_WAITING) {
      item.reject(new DbError('unavailable', `${MAX_WAITING} writes are waiting already`))
      return
    }
    this.#items.push(item)
    if (this.#blocker !== null) this.#armExpiry()
    if (this.#draining) return
    this.#draining = true
    // Later, so that the writes that follow in this turn of the event loop are committed together with it. Not in the immediate
    // itself, but behind it: Node does not get on behind one in which a function was stopped (core/schedule/stopped-immediate.ts).
    setImmediate(() => void Promise.resolve().then(() => this.#drain()))
  }

  /** Waits until all writes have settled, at most `timeoutMs`. The rest is rejected. */
  async close(timeoutMs: number): Promise<void> {
    const deadlineMs = performance.now() + timeoutMs
    while ((this.#draining || this.#storeSync?.isBusy) && performance.now() < deadlineMs) await pause(2)
    this.#closed = true
    for (const item of this.#items.splice(0)) item.reject(new DbError('unavailable', 'The database is closed'))
    this.#unblock()
  }

  /**
   * What ran in this thread was stopped. A transaction in whose function that was is rolled back: at once, or within a second where it is not
   * known whether that was there and it shows no sign of life.
   * @param context of what was stopped; undefined when that is not known
   * @returns what another queue is to run, with other connections; null when this one goes on
   */
  stopped(context: CausalContext | undefined): Item[] | null {
    if (this.#commit?.isCutOff) {
      this.#isGivenUp = true
      const again = this.#commit.giveUp(context)
      this.#unblock()
      this.#lock.release()
      return [...again, ...this.#items.splice(0)]
    }
    const late = this.#late
    if (late?.item.wasStopped(context)) {
      const { activity } = late.run
      setTimeout(
        () => {
          if (activity >= 0 && late.run.activity === activity) late.run.abandon(stoppedRefused())
        },
        context === undefined ? STOPPED_IDLE_MS : 0,
      ).unref()
    }
    return null
  }

  async #drain(): Promise<void> {
    while (this.#items.length > 0) {
      if (!this.#lock.tryAcquire()) {
        this.#block('thread')
        const acquired = await this.#lock.acquire(() => this.#items.length === 0)
        this.#unblock()
        if (!acquired) continue
      }
      const busy = await this.#holding()
      if (this.#isGivenUp) return
      this.#lock.release()
      if (busy) await this.#pauseForProcess()
      else if (this.#items.length > 0) await new Promise(setImmediate)
    }
    this.#draining = false
  }

  /** The lock is not held for the disk: meanwhile other writes commit, and share the next sync. */
  readonly #settle: Settle = (answer, fail) => {
    if (this.#storeSync === null) answer()
    else this.#storeSync.done().then(answer, fail)
  }

  /** Runs the next writes or transaction under the lock. True when another process holds SQLite's own lock. Never rejects. */
  async #holding(): Promise<boolean> {
    const head = this.#items[0]
    if (head === undefined) return false
    if (head.kind === 'exclusive') return this.#runExclusive(head)
    try {
      if (head.kind === 'transaction' && head.mode === 'process') return await this.#runInProcess(head)
      return await this.#runShared()
    } catch (thrown) {
      // A fault of the connection itself: the queue continues with the next item.
      if (this.#items[0] === head) this.#items.shift()
      head.reject(toDbError(thrown))
      return false
    }
  }

  /** True when a transaction is among what the next commit may hold. */
  #hasTransactionAhead(): boolean {
    const length = Math.min(this.#items.length, MAX_ITEMS)
    for (let i = 0; i < length; i++) {
      const item = this.#items[i]!
      if (item.kind === 'transaction') return true
      if (item.kind === 'exclusive' || item.solitary || item.isAlone) return false
    }
    return false
  }

  async #runShared(): Promise<boolean> {
    const hasTransactions = this.#hasTransactionAhead()
    const connection = hasTransactions ? this.#options.transactions() : this.#options.connection()
    try {
      this.#commit = new SharedCommit(connection, this.#front, this.#settle)
      const end = await this.#commit.run(hasTransactions)
      if (end === 'busy') return true
      this.#busyCount = 0
      if (end !== 'done') await this.#finish(end, () => connection.hasWritten)
    } finally {
      this.#takenCount = 0
      this.#commit = null
    }
    return false
  }

  readonly #front: Front = {
    peek: () => this.#items[0],
    peekSecond: () => this.#items[1],
    take: () => {
      this.#items.shift()
      this.#takenCount++
    },
    putBack: (items) => {
      if (!this.#closed) this.#items.unshift(...items)
      else for (const item of items) item.reject(new DbError('unavailable', 'The database is closed'))
    },
  }

  async #runInProcess(item: Transaction): Promise<boolean> {
    this.#items.shift()
    this.#block('transaction')
    const pulse = setInterval(() => this.#lock.renew(), PULSE_MS)
    try {
      const run = item.start(await ProcessSession.begin(this.#options.send))
      await this.#finish({ item, run }, () => false)
    } catch (thrown) {
      item.fail(thrown)
    } finally {
      clearInterval(pulse)
      this.#unblock()
    }
    return false
  }

  /** The others wait until this one has ended. */
  async #finish(late: Late, wrote: () => boolean): Promise<void> {
    this.#block('transaction')
    this.#late = late
    await endOf(late.run, () => this.#lock.renew())
    this.#late = null
    if (!(await finish(late, wrote, this.#settle))) {
      late.item.mode = 'process'
      this.#front.putBack([late.item])
    }
    this.#unblock()
  }

  async #runExclusive(head: Exclusive): Promise<boolean> {
    try {
      head.begin()
    } catch (thrown) {
      if (isBusy(thrown)) return true
      this.#items.shift()
      head.reject(toDbError(thrown))
      return false
    }
    this.#busyCount = 0
    this.#items.shift()
    this.#block('transaction')
    await head.run()
    this.#unblock()
    return false
  }

  async #pauseForProcess(): Promise<void> {
    this.#block('process')
    const pauseMs = Math.min(MAX_PAUSE_MS, 2 ** this.#busyCount++)
    await pause(pauseMs * (0.5 + Math.random() / 2))
    this.#unblock()
  }

  #block(blocker: Blocker): void {
    this.#blocker = blocker
    this.#armExpiry()
  }

  #unblock(): void {
    if (this.#blocker !== null) this.#expire(this.#blocker)
    this.#blocker = null
    if (this.#expiry) clearTimeout(this.#expiry)
    this.#expiry = null
  }

  #armExpiry(): void {
    const head = this.#items[0]
    if (head === undefined || this.#expiry !== null) return
    this.#expiry = setTimeout(
      () => {
        this.#expiry = null
        this.#expire(this.#blocker ?? 'process')
        if (this.#blocker !== null) this.#armExpiry()
      },
      Math.max(1, head.deadlineMs - performance.now()),
    )
  }

  /** All items may wait equally long, so those whose time is up are at the front. */
  #expire(blocker: Blocker): void {
    const now = performance.now()
    let expired = 0
    while (expired < this.#items.length && this.#items[expired]!.deadlineMs <= now) expired++
    if (expired === 0) return
    for (const item of this.#items.splice(0, expired)) item.reject(new DbError('timeout', MESSAGES[blocker]))
  }
}

const MESSAGES: Record<Blocker, string> = {
  transaction:
    `Waited ${WAIT_MS} ms for a transaction of this thread to end. A write or transaction that is sent through db within ` +
    'a transaction callback waits for itself: send it through the callback’s own tx',
  thread: `Waited ${WAIT_MS} ms for a transaction of another thread to end`,
  process: `Waited ${WAIT_MS} ms for the database file, which is locked`,
}
