// The connections of a thread: its share of all, its limit of transactions.

import { AsyncResource } from 'node:async_hooks'
import type { ThreadRef } from '../../contracts/tool.ts'
import { Fifo } from '../../core/collections/fifo.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { MAX_WAITING, WAIT_MS } from '../../stores/sql/database.ts'
import type { ConnectionBudget } from '../../transport/memory/connection-budget.ts'
import type { Access } from './access.ts'
import { PostgresConnection } from './connection.ts'
import type { Execution } from './execution.ts'
import { isCutShort, OPEN_AGAIN, toConnectError } from './failure.ts'

/** For a transaction, and a plain statement that is sent meanwhile. */
const PRIMARY_MAX = 2

/** The connection on which the primary hears of notifications and renews its lease. */
const LISTENING = 1

/** What is left of RDB_MAX_POOL for the pools of the threads. */
export const pooled = (maxPool: number): number => Math.max(1, maxPool - LISTENING)

interface PoolShare {
  /** Most connections of this thread. */
  max: number
  /** Connections that it keeps open. */
  min: number
}

/**
 * One thread's share of the process's RDB_MAX_POOL, without the connection that listens, and RDB_MIN_POOL.
 *
 * The primary gets at most 2, for migrations, health checks and its own plugins, and never more than in an equal share. The lanes share
 * the rest; when it cannot be divided evenly, the first lanes have one more. Every thread gets at least one, so more threads than
 * RDB_MAX_POOL open more connections than that: see `isShort`. Only the lanes keep a minimum open.
 * While a lane and its successor run side by side, the process still keeps to RDB_MAX_POOL, except for the first connection of each
 * thread: see connection-budget.ts.
 *
 * Of 10 pooled connections: 1 lane: primary 2, lane 8. 3 lanes: primary 2, lanes 3, 3, 2. 7 lanes: primary 1, lanes 2, 2, 1, 1, 1, 1, 1.
 */
export function poolShare(total: { max: number; min: number }, lanes: number, thread: ThreadRef): PoolShare {
  const primary = Math.max(1, Math.min(PRIMARY_MAX, Math.floor(total.max / (lanes + 1))))
  if (thread.kind === 'primary') return { max: primary, min: 0 }
  const max = Math.max(1, part(total.max - primary, lanes, thread.index))
  return { max, min: Math.min(max, part(total.min, lanes, thread.index)) }
}

/** There are more threads than connections. */
export function isShort(max: number, lanes: number): boolean {
  return lanes + 1 > max
}

/** The lanes on demand, whose indexes follow the others and which exist only at times, get the share of the last lane. */
function part(whole: number, lanes: number, index: number): number {
  const lane = Math.min(index, lanes - 1)
  return Math.floor(whole / lanes) + (lane < whole % lanes ? 1 : 0)
}

/**
 * Why this is not `pg.Pool` (pg-pool 3.14). With it in this place these tests of test/rooms/db failed:
 *
 *   it keeps no connection for plain statements       postgres: more transactions than there are connections wait for their turn …
 *   one that cannot be opened fails its caller,       postgres-faults: a server that takes no more connections is worked with as far as
 *     though others are open                            it goes …
 *   `min` keeps connections open, but opens none      postgres-faults: the minimum is kept open, and opened again when it was lost
 *   a statement on a frozen server never ends         postgres-faults: a frozen server costs a clear timeout …; postgres-lanes: likewise
 *   `end()` never answers callers that wait           postgres-sessions: after its stop it takes nothing more
 *
 * It also has no limit that several threads share (test/unit/shm/frames). When `pg.Pool` only opened, kept and closed connections,
 * with the rest built around it, all of these tests but the last passed. But then each statement needs another turn of the event loop
 * and four listeners, which is a tenth more CPU per query (`npm run bench -- elastic`, its database part).
 */

/** Milliseconds between two checks for statements that take too long and connections that are no longer needed. */
const LOOK_MS = 250
/** Connections beyond the minimum are closed when they were idle for so many milliseconds. */
const IDLE_CLOSE_MS = 30_000
/** Milliseconds before another attempt after a connection could not be opened. Statements sent meanwhile fail with the same error. */
const RETRY_MS = 100
/** Milliseconds between two attempts to open the minimum while the server cannot be reached. */
const REFILL_MS = 1000
/** Milliseconds that the server has after its own statement timeout before the connection is ended. */
const ANSWER_GRACE_MS = 2000

/** A statement or a transaction that waits for a connection. */
interface Waiter {
  /** By `performance.now()`. All may wait equally long, so the time of the first in line is up first. */
  readonly deadlineMs: number
  grant(connection: PostgresConnection): void
  fail(error: DbError): void
}

interface PoolOptions extends PoolShare {
  /** The limit of connections of the whole process. */
  readonly budget: ConnectionBudget
  readonly access: Access
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
  /** Most connections that transactions hold. */
  readonly mostHeld: number
  #held = 0
  readonly #all = new Set<PostgresConnection>()
  /** The connection that was used last is used next, so that the others become idle for long and are closed. */
  readonly #idle: PostgresConnection[] = []
  readonly #statements = new Fifo<Waiter>()
  readonly #holders = new Fifo<Waiter>()
  #opening = 0
  #retryAtMs = 0
  #refillAtMs = Number.POSITIVE_INFINITY
  /** Why the last attempt to open a connection failed; null when it did not. */
  #fault: DbError | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  /** Sockets and timers must not keep the asynchronous context of the request that needed them first. */
  readonly #scope = new AsyncResource('db.pool')

  constructor(options: PoolOptions) {
    this.#options = options
    this.#limitMs = options.statementTimeoutMs + ANSWER_GRACE_MS
    this.mostHeld = Math.max(1, options.max - 1)
  }

  /** Opens the minimum without waiting for it, and keeps it open from now on. */
  warm(): void {
    this.#refillAtMs = 0
    this.#refill()
  }

  /** Runs a statement on any connection. Never throws: the execution gets the error. */
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

  /** Takes a connection for several statements. It must be released. @throws DbError `timeout`, `unavailable` */
  acquire(): Promise<PostgresConnection> {
    return new Promise((resolve, reject) => {
      const grant = (connection: PostgresConnection): void => {
        this.#held++
        resolve(connection)
      }
      const connection = this.#held < this.mostHeld ? this.#idle.pop() : undefined
      if (connection !== undefined) grant(connection)
      else this.#wait(this.#holders, { deadlineMs: performance.now() + WAIT_MS, grant, fail: reject })
    })
  }

  /** Returns an acquired connection. It is closed when it is busy or has an open transaction. */
  release(connection: PostgresConnection): void {
    this.#held--
    this.#free(connection)
  }

  /** Tables have changed: every connection prepares its statements again. */
  forgetPrepared(): void {
    for (const connection of this.#all) connection.forgetPrepared()
  }

  /** Waits at most `timeoutMs` for running statements, and ends all connections. */
  async close(timeoutMs: number): Promise<void> {
    const endMs = performance.now() + timeoutMs
    this.#isClosed = true
    this.#failAll(new DbError('unavailable', 'The database is closed'))
    for (const connection of [...this.#idle]) connection.close()
    while (this.#all.size > 0 && performance.now() < endMs) await new Promise((done) => setTimeout(done, 2))
    for (const connection of this.#all) connection.destroy()
    clearInterval(this.#timer)
  }

  #start(execution: Execution, connection: PostgresConnection): void {
    execution.release = () => this.#free(connection)
    connection.run(execution)
  }

  #free(connection: PostgresConnection): void {
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

  /** Gives idle connections to those that have waited longest. */
  #serve(): void {
    while (this.#idle.length > 0) {
      const statement = this.#statements.peek()
      const holder = this.#held < this.mostHeld ? this.#holders.peek() : undefined
      if (statement === undefined && holder === undefined) return
      const isHolderFirst =
        statement === undefined || (holder !== undefined && holder.deadlineMs < statement.deadlineMs)
      const line = isHolderFirst ? this.#holders : this.#statements
      line.shift()!.grant(this.#idle.pop()!)
    }
  }

  #failAll(error: DbError): void {
    for (const line of [this.#statements, this.#holders]) {
      // Only those that wait now: one that fails may be sent again at once.
      for (let n = line.size; n > 0; n--) line.shift()?.fail(error)
    }
  }

  // ── opening and closing ───────────────────────────────────────────────────

  #openForWaiters(): void {
    const { max } = this.#options
    if (this.#isClosed || performance.now() < this.#retryAtMs) return
    const wanted = this.#statements.size + Math.min(this.#holders.size, this.mostHeld - this.#held)
    while (this.#opening < wanted && this.#all.size < max && this.#open());
  }

  /** False when the process already has as many as it may have: the next check tries again. */
  #open(again = this.#fault === null ? OPEN_AGAIN : 0): boolean {
    return this.#scope.runInAsyncScope(() => {
      this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
      if (!this.#options.budget.tryTake()) return false
      const connection = new PostgresConnection(this.#options.access, this.#limitMs, (dead) => this.#gone(dead))
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
          if (again === 0 || this.#isClosed || !isCutShort(thrown) || !this.#open(again - 1)) this.#failed(thrown)
        },
      )
      return true
    })
  }

  #failed(thrown: unknown): void {
    this.#fault = toConnectError(thrown, this.#options.access.config)
    this.#retryAtMs = performance.now() + RETRY_MS
    // While there are other connections the callers keep waiting for one of them.
    if (this.#all.size === 0) this.#failAll(this.#fault)
  }

  #gone(connection: PostgresConnection): void {
    this.#all.delete(connection)
    this.#options.budget.give()
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    // A connection that could not be opened is not replaced at once: see #failed.
    if (connection.isOpen) this.#openForWaiters()
  }

  #look(): void {
    const nowMs = performance.now()
    for (const connection of this.#all) connection.expire(nowMs)
    for (const line of [this.#statements, this.#holders]) {
      while ((line.peek()?.deadlineMs ?? Number.POSITIVE_INFINITY) <= nowMs) line.shift()!.fail(this.#waitedInVain())
    }
    this.#openForWaiters()
    // The ones that are idle longest come first.
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
    const { host, port } = this.#options.access.config
    const open = this.#all.size - this.#opening
    if (open === 0)
      return new DbError('unavailable', `Waited ${WAIT_MS} ms for a connection: ${host}:${port} does not answer`)
    const why =
      this.#fault === null
        ? `all ${open} of this thread are in use (RDB_MAX_POOL is shared out over the threads)`
        : `${open} are in use, and no other could be opened: ${this.#fault.message}`
    return new DbError(
      'timeout',
      `Waited ${WAIT_MS} ms for a connection: ${why}. A statement that is sent through db within a transaction callback ` +
        'needs a second connection: send it through the callback’s own tx',
    )
  }
}
