/**
 * Why this is not `pg.Pool` (pg-pool 3.14). It was put in this place, and these tests failed:
 *
 *   it keeps no connection for plain statements       postgres: more transactions than there are connections wait for their turn …
 *   one that cannot be opened fails its caller,       postgres-faults: a server that takes no more connections is worked with as far as
 *     though others are open                            it goes …
 *   `min` keeps connections open, but opens none      postgres-faults: the minimum is kept open, and opened again when it was lost
 *   a statement on a frozen server never ends         postgres-faults: a frozen server costs a clear timeout …; postgres-lanes: likewise
 *   `end()` forgets who waits                         postgres-sessions: after its stop it takes nothing more
 *
 * It also knows no limit that threads share (test/shm/connection-budget). With `pg.Pool` only to open, keep and close connections, and
 * the rest built around it, all but the last of them passed; but each statement then needs another turn of the loop and four
 * listeners, which is a tenth more CPU a query (`npm run bench -- elastic`, its database part).
 */
import { AsyncResource } from 'node:async_hooks'
import type { ClientConfig } from 'pg'
import { Fifo } from '../../core/collections/fifo.ts'
import { DbError } from '../../core/errors/db-error.ts'
import { MAX_WAITING, WAIT_MS } from '../../stores/sql/limits.ts'
import { Connection } from './connection.ts'
import type { Execution } from './execution.ts'
import { toConnectError } from './failure.ts'
import { HoldLimit } from './hold-limit.ts'
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

/** The limit of the whole process. */
export interface Budget {
  /** Counts one connection, if there may be one more. */
  tryTake(): boolean
  give(): void
}

/** A statement or a transaction that waits for a connection. */
interface Waiter {
  /** By `performance.now()`. All wait equally long, so that the first in line is the first whose time is up. */
  readonly deadlineMs: number
  grant(connection: Connection): void
  fail(error: DbError): void
}

export interface PoolOptions extends PoolShare {
  readonly budget: Budget
  readonly config: ClientConfig
  readonly statementTimeoutMs: number
}

/**
 * The connections of one thread. A statement that finds none free waits in line, and a connection is opened for it while there is room.
 * A connection that has failed is never used again; it is replaced when one is needed.
 *
 * Transactions leave one connection to plain statements. Otherwise callbacks that also send plain statements would wait for each other.
 */
export class Pool {
  readonly #options: PoolOptions
  readonly #limitMs: number
  /** Connections that are kept for more than one statement. */
  readonly #held: HoldLimit
  readonly #all = new Set<Connection>()
  /** The one used last is used next: the others grow old, and are closed. */
  readonly #idle: Connection[] = []
  readonly #statements = new Fifo<Waiter>()
  readonly #holders = new Fifo<Waiter>()
  #opening = 0
  #retryAtMs = 0
  #refillAtMs = Number.POSITIVE_INFINITY
  /** Why the last try to open a connection failed; null when it did not. */
  #fault: DbError | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Sockets and timers belong to nobody's request, whoever happened to need them first. */
  readonly #scope = new AsyncResource('db.pool')

  constructor(options: PoolOptions) {
    this.#options = options
    this.#limitMs = options.statementTimeoutMs + ANSWER_GRACE_MS
    this.#held = new HoldLimit(Math.max(1, options.max - 1))
  }

  /** Opens the minimum, and keeps it open from now on. Does not wait for it. */
  warm(): void {
    this.#refillAtMs = 0
    this.#refill()
  }

  /** Runs a statement on any connection. Never throws: the execution gets what goes wrong. */
  run(execution: Execution): void {
    const connection = this.#idle.pop()
    if (connection !== undefined) this.#start(execution, connection)
    else {
      this.#wait(this.#statements, {
        deadlineMs: performance.now() + WAIT_MS,
        grant: (granted) => this.#start(execution, granted),
        fail: (error) => execution.fail(error),
      })
    }
  }

  /** A connection to keep; each must be released. @throws DbError `timeout`, `unavailable` */
  acquire(): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const grant = (connection: Connection): void => {
        this.#held.take()
        resolve(connection)
      }
      const connection = this.#held.room > 0 ? this.#idle.pop() : undefined
      if (connection !== undefined) grant(connection)
      else this.#wait(this.#holders, { deadlineMs: performance.now() + WAIT_MS, grant, fail: reject })
    })
  }

  /** Runs a statement on a connection that was acquired. */
  runOn(connection: Connection, execution: Execution): void {
    connection.run(execution, this.#limitMs)
  }

  /** Gives an acquired connection back. One that may not be as it was is closed. */
  release(connection: Connection): void {
    this.#held.give()
    this.#free(connection)
  }

  /** A transaction has collided with another. */
  collided(): void {
    this.#held.collided()
  }

  /** A transaction has come through. */
  cameThrough(): void {
    this.#held.cameThrough()
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
    for (const connection of [...this.#idle]) connection.close()
    while (this.#all.size > 0 && performance.now() < endMs) await new Promise((done) => setTimeout(done, 2))
    for (const connection of this.#all) connection.destroy()
    clearInterval(this.#timer)
  }

  #start(execution: Execution, connection: Connection): void {
    execution.release = () => this.#free(connection)
    connection.run(execution, this.#limitMs)
  }

  #free(connection: Connection): void {
    if (connection.isDead) {
      this.#openForWaiters()
    } else if (this.#isClosed || connection.isBusy || !connection.isClean) {
      connection.close()
    } else {
      connection.idleSinceMs = performance.now()
      this.#idle.push(connection)
      this.#serve()
    }
  }

  // ── waiting ───────────────────────────────────────────────────────────────

  #wait(line: Fifo<Waiter>, waiter: Waiter): void {
    if (this.#isClosed) return waiter.fail(new DbError('unavailable', 'The database is closed'))
    if (this.#statements.size + this.#holders.size >= MAX_WAITING) {
      return waiter.fail(new DbError('unavailable', `${MAX_WAITING} statements are waiting already`))
    }
    if (this.#fault !== null && this.#all.size === 0 && performance.now() < this.#retryAtMs) {
      return waiter.fail(this.#fault)
    }
    line.push(waiter)
    this.#openForWaiters()
  }

  /** Hands free connections to those who wait longest. */
  #serve(): void {
    while (this.#idle.length > 0) {
      const statement = this.#statements.peek()
      const holder = this.#held.room > 0 ? this.#holders.peek() : undefined
      if (statement === undefined && holder === undefined) return
      const isHolderFirst =
        statement === undefined || (holder !== undefined && holder.deadlineMs < statement.deadlineMs)
      const line = isHolderFirst ? this.#holders : this.#statements
      line.shift()!.grant(this.#idle.pop()!)
    }
  }

  #failAll(error: DbError): void {
    for (const line of [this.#statements, this.#holders]) {
      // Only those who wait now: one that is told may come back at once.
      for (let n = line.size; n > 0; n--) line.shift()?.fail(error)
    }
  }

  // ── opening and closing ───────────────────────────────────────────────────

  #openForWaiters(): void {
    const { max } = this.#options
    if (this.#isClosed || performance.now() < this.#retryAtMs) return
    const wanted = this.#statements.size + Math.min(this.#holders.size, this.#held.room)
    while (this.#opening < wanted && this.#all.size < max && this.#open());
  }

  /** False when the process has all that it may have: it is tried again at the next look. */
  #open(): boolean {
    return this.#scope.runInAsyncScope(() => {
      this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
      if (!this.#options.budget.tryTake()) return false
      const connection = new Connection(this.#options.config, (dead) => this.#gone(dead))
      this.#all.add(connection)
      this.#opening++
      connection.open().then(
        () => {
          this.#opening--
          this.#fault = null
          this.#free(connection)
        },
        (thrown) => {
          this.#opening--
          connection.destroy()
          this.#failed(thrown)
        },
      )
      return true
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
    this.#options.budget.give()
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    // One that could not be opened is not replaced at once: see #failed.
    if (connection.isOpen) this.#openForWaiters()
  }

  #look(): void {
    const nowMs = performance.now()
    for (const connection of this.#all) connection.expire(nowMs, this.#limitMs)
    for (const line of [this.#statements, this.#holders]) {
      while ((line.peek()?.deadlineMs ?? Number.POSITIVE_INFINITY) <= nowMs) line.shift()!.fail(this.#waitedInVain())
    }
    this.#openForWaiters()
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
    while (this.#all.size < this.#options.min && this.#open());
  }

  #waitedInVain(): DbError {
    const { host, port } = this.#options.config
    const open = this.#all.size - this.#opening
    if (open === 0)
      return new DbError('timeout', `Waited ${WAIT_MS} ms for a connection: ${host}:${port} does not answer`)
    const why =
      this.#fault === null
        ? `all ${open} of this thread are in use (RDB_MAX_POOL is shared out over the threads)`
        : `${open} are in use, and no other could be opened: ${this.#fault.message}`
    return new DbError(
      'timeout',
      `Waited ${WAIT_MS} ms for a connection: ${why}. What is sent through db inside of a transaction callback needs ` +
        'a connection besides that of the transaction: send it through the callback’s own tx',
    )
  }
}
