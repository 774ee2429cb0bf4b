import { AsyncResource } from 'node:async_hooks'
import type { Queryable, SqlValue } from '../../contracts/db.ts'
import type { TransactionCompanion } from '../../contracts/transaction-companion.ts'
import { causality, NO_CAUSE, type RunningTransaction } from '../../core/causality/context.ts'
import type { DbError } from '../../core/errors/db-error.ts'
import { WAIT_MS } from '../../stores/sql/limits.ts'
import type { Outcome } from '../../stores/sql/outcome.ts'
import type { Promptness } from './promptness.ts'
import { TransactionRun, type TransactionSession } from './transaction.ts'
import type { Transaction, Write } from './write.ts'

// Classes, not objects of functions: on the way of every write, the transpiler's naming of such functions costs more than they do.

/** What hears of failures, because some say that all writes will fail. */
export interface FaultListener {
  noteFault(error: DbError): void
  /** Of a transaction that has run: a timeout may be its own. */
  noteFailure(thrown: unknown): void
}

type Settle<T> = (value: T) => void

export class QueuedWrite implements Write {
  readonly kind = 'write'
  readonly sql: string
  readonly params: readonly SqlValue[]
  readonly solitary: boolean
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

export interface TransactionWork {
  readonly work: (tx: Queryable) => Promise<unknown>
  readonly promptness: Promptness
  /** Makes what goes with each run. Left out for a transaction of the runtime itself. */
  readonly accompany: (() => TransactionCompanion) | undefined
  /** Measures what a companion has extended: a plugin calls it. */
  readonly instrument: <T extends object>(tx: T) => T
}

/** In the asynchronous context of its caller: the queue runs it in that of another one. */
export class QueuedTransaction extends AsyncResource implements Transaction {
  readonly kind = 'transaction'
  mode: Transaction['mode'] = 'shared'
  isGuarded = false
  readonly promptness: Promptness
  readonly deadlineMs = performance.now() + WAIT_MS
  readonly #work: TransactionWork
  readonly #faults: FaultListener
  readonly #resolve: Settle<unknown>
  readonly #reject: Settle<unknown>

  constructor(work: TransactionWork, faults: FaultListener, resolve: Settle<unknown>, reject: Settle<unknown>) {
    super('DbTransaction')
    this.promptness = work.promptness
    this.#work = work
    this.#faults = faults
    this.#resolve = resolve
    this.#reject = reject
  }

  start(session: TransactionSession): TransactionRun {
    return this.runInAsyncScope(startRun, undefined, this.#work, session)
  }

  resolve(result: unknown): void {
    this.#resolve(result)
  }

  fail(thrown: unknown): void {
    this.#faults.noteFailure(thrown)
    this.#reject(thrown)
  }

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

function run(
  { work, accompany, instrument }: TransactionWork,
  session: TransactionSession,
  running: RunningTransaction,
): TransactionRun {
  return new TransactionRun(work, { session, running, instrument, accompany })
}
