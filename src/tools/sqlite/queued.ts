// What stands in the queue of a thread: a write, a transaction, something that is alone.

import { AsyncResource } from 'node:async_hooks'
import type { SqlValue } from '../../contracts/db.ts'
import type { RunningTransaction } from '../../contracts/tracing.ts'
import { causality, NO_CAUSE } from '../../core/causality/context.ts'
import type { DbError } from '../../core/errors/db-error.ts'
import { type Outcome, WAIT_MS } from '../../stores/sql/database.ts'
import type { Promptness } from './promptness.ts'
import { TransactionRun, type TransactionSession, type TransactionWork } from './transaction.ts'

/** Something that holds the write lock until it has settled. */
export interface Exclusive {
  readonly kind: 'exclusive'
  readonly deadlineMs: number
  /** @throws SQLite's `busy` when it must be tried again */
  begin(): void
  /** Never rejects. */
  run(): Promise<void>
  reject(error: DbError): void
}

export type Item = Write | Transaction | Exclusive

// Classes, not objects of functions: on the way of every write, the transpiler's naming of such functions costs more than they do.

/** What hears of failures, because some say that all writes will fail. */
export interface FaultListener {
  noteFault(error: DbError): void
  /** Of a transaction that has run: a timeout may be its own. */
  noteFailure(thrown: unknown): void
}

type Settle<T> = (value: T) => void

/** A single statement that writes. */
export class Write {
  readonly kind = 'write'
  readonly sql: string
  readonly params: readonly SqlValue[]
  /** It cannot run in one transaction with others. */
  readonly solitary: boolean
  /** It was in a commit that failed, and is run again by itself. */
  isAlone = false
  readonly deadlineMs = performance.now() + WAIT_MS
  readonly #faults: FaultListener
  readonly #resolve: Settle<Outcome>
  readonly #reject: Settle<DbError>

  constructor(
    { sql, params, solitary }: { sql: string; params: readonly SqlValue[]; solitary: boolean },
    faults: FaultListener,
    resolve: Settle<Outcome>,
    reject: Settle<DbError>,
  ) {
    this.sql = sql
    this.params = params
    this.solitary = solitary
    this.#faults = faults
    this.#resolve = resolve
    this.#reject = reject
  }

  resolve(outcome: Outcome): void {
    this.#resolve(outcome)
  }

  reject(error: DbError): void {
    this.#faults.noteFault(error)
    this.#reject(error)
  }
}

/**
 * A transaction. It shares its commit with others where it can. In the asynchronous context of its caller: the queue runs it in that of another
 * one.
 */
export class Transaction extends AsyncResource {
  readonly kind = 'transaction'
  /** `alone`: it waits for more than its `tx`, or was in a commit that failed. `process`: it has met a heavy statement. */
  mode: 'shared' | 'alone' | 'process' = 'shared'
  /** It has a savepoint when it shares a commit, whatever is known of its function. */
  isGuarded = false
  readonly promptness: Promptness
  readonly deadlineMs = performance.now() + WAIT_MS
  readonly #work: TransactionWork
  readonly #faults: FaultListener
  readonly #resolve: Settle<unknown>
  readonly #reject: Settle<unknown>

  constructor(
    work: TransactionWork,
    promptness: Promptness,
    faults: FaultListener,
    resolve: Settle<unknown>,
    reject: Settle<unknown>,
  ) {
    super('DbTransaction')
    this.promptness = promptness
    this.#work = work
    this.#faults = faults
    this.#resolve = resolve
    this.#reject = reject
  }

  /** Runs its function on a session that has begun. */
  start(session: TransactionSession): TransactionRun {
    return this.runInAsyncScope(startRun, undefined, this.#work, session)
  }

  resolve(result: unknown): void {
    this.#resolve(result)
  }

  /** Its function has thrown, or the commit has failed. */
  fail(thrown: unknown): void {
    this.#faults.noteFailure(thrown)
    this.#reject(thrown)
  }

  /** It has not run. */
  reject(error: DbError): void {
    this.#faults.noteFault(error)
    this.#reject(error)
  }
}

/** Its function knows by its context that nobody else can write meanwhile. */
function startRun(work: TransactionWork, session: TransactionSession): TransactionRun {
  const running = { isOpen: true }
  return causality.run({ ...(causality.getStore() ?? NO_CAUSE), transaction: running }, run, work, session, running)
}

const run = (work: TransactionWork, session: TransactionSession, running: RunningTransaction): TransactionRun =>
  new TransactionRun(work, session, running)
