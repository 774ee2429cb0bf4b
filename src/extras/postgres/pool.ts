import { AsyncResource } from 'node:async_hooks'
import type { ClientConfig } from 'pg'
import { MAX_WAITING, WAIT_MS } from '../../db/limits.ts'
import { DbError } from '../../errors/db-error.ts'
import { Connection } from './connection.ts'
import type { Execution } from './execution.ts'
import { toConnectError } from './failure.ts'
import type { PoolShare } from './pool-share.ts'

/** Milliseconds between two looks at what takes too long, and at what is no longer needed. */
const LOOK_MS = 250
/** Connections beyond the minimum are closed after so many milliseconds without work. */
const IDLE_CLOSE_MS = 30_000
/** After a connection could not be opened the next try waits so long, in milliseconds; who comes meanwhile gets the same answer. */
const RETRY_MS = 100
/** Milliseconds between two tries to keep the minimum open, while the server cannot be reached. */
const REFILL_MS = 1000
/** Milliseconds that the server gets beyond its own statement timeout before the connection is given up. */
const ANSWER_GRACE_MS = 2000

interface Waiter {
  readonly deadlineMs: number
  grant(connection: Connection): void
  fail(error: DbError): void
  next: Waiter | null
}

export interface PoolOptions extends PoolShare {
  readonly config: ClientConfig
  readonly statementTimeoutMs: number
}

/**
 * The connections of one thread. Whoever finds none free waits in line; a connection is opened for them while there is room.
 * One that has failed is never used again, and is replaced when somebody needs it.
 */
export class Pool {
  readonly #options: PoolOptions
  readonly #limitMs: number
  readonly #all = new Set<Connection>()
  /** The one used last is used next: the others grow old, and are closed. */
  readonly #idle: Connection[] = []
  #first: Waiter | null = null
  #last: Waiter | null = null
  #waiting = 0
  #opening = 0
  #retryAtMs = 0
  #refillAtMs = Number.POSITIVE_INFINITY
  #fault: DbError | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Sockets and timers belong to nobody's request, whoever happened to need them first. */
  readonly #scope = new AsyncResource('db.pool')

  constructor(options: PoolOptions) {
    this.#options = options
    this.#limitMs = options.statementTimeoutMs + ANSWER_GRACE_MS
  }

  /** Opens the minimum, and keeps it open from now on. Does not wait for it. */
  warm(): void {
    this.#refillAtMs = 0
    this.#refill()
  }

  /** Runs a statement on a connection of its own. Never throws: the execution gets what goes wrong. */
  run(execution: Execution): void {
    const connection = this.#idle.pop()
    if (connection !== undefined) return this.#start(execution, connection)
    this.#wait({
      deadlineMs: performance.now() + WAIT_MS,
      grant: (granted) => this.#start(execution, granted),
      fail: (error) => execution.fail(error),
      next: null,
    })
  }

  /** A connection for more than one statement; to be released. @throws DbError `timeout`, `unavailable` */
  acquire(): Promise<Connection> {
    const connection = this.#idle.pop()
    if (connection !== undefined) return Promise.resolve(connection)
    return new Promise((resolve, reject) => {
      this.#wait({ deadlineMs: performance.now() + WAIT_MS, grant: resolve, fail: reject, next: null })
    })
  }

  /** Runs a statement on an acquired connection. */
  runOn(connection: Connection, execution: Execution): void {
    connection.run(execution, this.#limitMs)
  }

  /** Gives an acquired connection back; one that may not be as it was is closed. */
  release(connection: Connection): void {
    if (connection.isDead) return
    if (this.#isClosed || connection.isBusy || !connection.isClean) return connection.close()
    const waiter = this.#takeWaiter()
    if (waiter !== null) return waiter.grant(connection)
    connection.idleSinceMs = performance.now()
    this.#idle.push(connection)
  }

  /** Ends an acquired connection. */
  discard(connection: Connection): void {
    connection.close()
  }

  /** Tables have changed: every connection makes its prepared statements anew. */
  forgetPrepared(): void {
    for (const connection of this.#all) connection.forgetPrepared()
  }

  /** Waits at most `timeoutMs` for what is under way, and ends all connections. */
  async close(timeoutMs: number): Promise<void> {
    const endMs = performance.now() + timeoutMs
    this.#isClosed = true
    this.#failAll(new DbError('unavailable', 'The database is closed'))
    for (const connection of this.#idle.splice(0)) connection.close()
    while (this.#all.size > 0 && performance.now() < endMs) await new Promise((done) => setTimeout(done, 2))
    for (const connection of this.#all) connection.destroy()
    clearInterval(this.#timer)
  }

  #start(execution: Execution, connection: Connection): void {
    execution.release = () => this.release(connection)
    connection.run(execution, this.#limitMs)
  }

  // ── waiting ───────────────────────────────────────────────────────────────

  #wait(waiter: Waiter): void {
    if (this.#isClosed) return waiter.fail(new DbError('unavailable', 'The database is closed'))
    if (this.#waiting >= MAX_WAITING) {
      return waiter.fail(new DbError('unavailable', `${MAX_WAITING} statements are waiting already`))
    }
    if (this.#fault !== null && this.#all.size === 0 && performance.now() < this.#retryAtMs) {
      return waiter.fail(this.#fault)
    }
    if (this.#last === null) this.#first = waiter
    else this.#last.next = waiter
    this.#last = waiter
    this.#waiting++
    this.#openForWaiters()
  }

  #takeWaiter(): Waiter | null {
    const waiter = this.#first
    if (waiter === null) return null
    this.#first = waiter.next
    if (this.#first === null) this.#last = null
    this.#waiting--
    return waiter
  }

  #failAll(error: DbError): void {
    // Only those who wait now: one that is told may come back at once.
    for (let n = this.#waiting; n > 0; n--) this.#takeWaiter()?.fail(error)
  }

  // ── opening and closing ───────────────────────────────────────────────────

  #openForWaiters(): void {
    if (performance.now() < this.#retryAtMs) return
    while (this.#opening < this.#waiting && this.#all.size < this.#options.max) this.#open()
  }

  #open(): void {
    this.#scope.runInAsyncScope(() => {
      this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
      const connection = new Connection(this.#options.config, (dead) => this.#gone(dead))
      this.#all.add(connection)
      this.#opening++
      connection.open().then(
        () => {
          this.#opening--
          this.#fault = null
          this.release(connection)
        },
        (thrown) => {
          this.#opening--
          connection.destroy()
          this.#failed(thrown)
        },
      )
    })
  }

  #failed(thrown: unknown): void {
    const { host = '', port = 0, user = '', database = '' } = this.#options.config
    this.#fault = toConnectError(thrown, { host, port, user, database })
    this.#retryAtMs = performance.now() + RETRY_MS
    // Those who can still hope for another connection go on waiting.
    if (this.#all.size === 0) this.#failAll(this.#fault)
  }

  #gone(connection: Connection): void {
    this.#all.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    // One that could not be opened is not replaced at once: see #failed.
    if (connection.isOpen && this.#waiting > 0) this.#openForWaiters()
  }

  #look(): void {
    const nowMs = performance.now()
    for (const connection of this.#all) connection.expire(nowMs, this.#limitMs)
    while (this.#first !== null && this.#first.deadlineMs <= nowMs) this.#takeWaiter()?.fail(this.#waitedInVain())
    if (this.#waiting > 0) this.#openForWaiters()
    // The oldest stand in front.
    while (this.#all.size > this.#options.min && nowMs - (this.#idle[0]?.idleSinceMs ?? nowMs) > IDLE_CLOSE_MS) {
      this.#idle[0]!.close()
    }
    this.#refill()
  }

  #refill(): void {
    const nowMs = performance.now()
    if (this.#isClosed || nowMs < this.#refillAtMs) return
    this.#refillAtMs = nowMs + REFILL_MS
    while (this.#all.size < this.#options.min) this.#open()
  }

  #waitedInVain(): DbError {
    const { host, port } = this.#options.config
    const isConnected = this.#all.size > this.#opening
    if (!isConnected)
      return new DbError('timeout', `Waited ${WAIT_MS} ms for a connection: ${host}:${port} does not answer`)
    const why =
      this.#fault === null
        ? `all ${this.#options.max} of this thread are in use (RDB_MAX_POOL is shared out over the threads)`
        : `${this.#all.size} are in use and no other could be opened: ${this.#fault.message}`
    return new DbError(
      'timeout',
      `Waited ${WAIT_MS} ms for a connection: ${why}. A statement that is sent through db inside of a transaction callback ` +
        'needs a second one: send it through the callback’s own tx',
    )
  }
}
