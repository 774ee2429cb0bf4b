// What stands in the queue of a thread: a write, a transaction and what is known of its function, something that is alone.

import { AsyncResource } from 'node:async_hooks'
import type { SqlValue } from '../../contracts/db.ts'
import type { CausalContext, RunningTransaction } from '../../contracts/tracing.ts'
import { causality, NO_CAUSE } from '../../core/causality/context.ts'
import { RecentlyUsed } from '../../core/collections/recently-used.ts'
import type { DbError } from '../../core/errors/catalogue.ts'
import { type Outcome, WAIT_MS } from '../../stores/sql/database.ts'
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
  readonly resolve: Settle<Outcome>
  readonly #faults: FaultListener
  readonly #reject: Settle<DbError>

  constructor(
    sql: string,
    params: readonly SqlValue[],
    solitary: boolean,
    faults: FaultListener,
    resolve: Settle<Outcome>,
    reject: Settle<DbError>,
  ) {
    this.sql = sql
    this.params = params
    this.solitary = solitary
    this.#faults = faults
    this.resolve = resolve
    this.#reject = reject
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
  readonly resolve: Settle<unknown>
  /** Its function, as the last call of it knows it; null before the first. */
  running: RunningTransaction | null = null
  readonly #work: TransactionWork
  readonly #faults: FaultListener
  #reject: Settle<unknown>

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
    this.resolve = resolve
    this.#reject = reject
  }

  /** Runs its function on a session that has begun. */
  start(session: TransactionSession): TransactionRun {
    this.running = { isOpen: true }
    return this.runInAsyncScope(startRun, undefined, this.#work, session, this.running)
  }

  /** Whether its function was stopped, as far as that can be told. @param context of what was stopped; undefined when that is not known */
  wasStopped(context: CausalContext | undefined): boolean {
    if (context === undefined) return this.running?.isOpen === true
    if (this.running === null || context.transaction !== this.running) return false
    // Whoever waits for it was stopped with it, and counts as settled.
    this.#reject = () => {}
    return true
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
function startRun(work: TransactionWork, session: TransactionSession, running: RunningTransaction): TransactionRun {
  return causality.run({ ...(causality.getStore() ?? NO_CAUSE), transaction: running }, run, work, session, running)
}

const run = (work: TransactionWork, session: TransactionSession, running: RunningTransaction): TransactionRun =>
  new TransactionRun(work, session, running)

/** So many prompt runs outweigh one that was not. */
const LATE_WEIGHT = 64
/** So many runs must have succeeded, or have succeeded since the last that failed, before a function runs without a savepoint. */
const NEW_CAUTION = 16
const FAILED_CAUTION = 256
/** Functions that are remembered. */
const MAX_FUNCTIONS = 1024

/** What is known of the functions with one source text, or of one route. */
export interface Promptness {
  /** Above zero: their last runs waited for nothing but their `tx`. */
  score: number
  /** Above zero: one of their last runs has failed, or there were few so far. */
  caution: number
}

/**
 * Remembers which functions of transactions wait for nothing but their `tx`. Only such a one may follow others in a commit, because they wait
 * for it. A function is known by its source text: each call of the code around it makes a new function object. Or by the name of its route,
 * which costs less than the text.
 */
export class PromptFunctions {
  readonly #known = new RecentlyUsed<string, Promptness>(MAX_FUNCTIONS)

  /** @param work a function, or what it is known by */
  of(work: unknown): Promptness {
    const source = typeof work === 'string' ? work : sourceOf(work)
    const known = this.#known.get(source)
    if (known !== undefined) return known
    const unknown: Promptness = { score: 0, caution: NEW_CAUTION }
    this.#known.add(source, unknown)
    return unknown
  }
}

/** @param hasSucceeded its result is to be committed */
export function noteRun(promptness: Promptness, wasPrompt: boolean, hasSucceeded: boolean): void {
  if (!hasSucceeded) promptness.caution = FAILED_CAUTION
  else if (promptness.caution > 0) promptness.caution--
  if (!wasPrompt) promptness.score = -LATE_WEIGHT
  else if (promptness.score < 1) promptness.score++
}

// Not `work.toString()`, which may be anything.
const textOf = Function.prototype.toString

/** What is no function fails when it is called. */
function sourceOf(work: unknown): string {
  return typeof work === 'function' ? textOf.call(work) : ''
}
