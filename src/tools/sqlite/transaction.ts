// One run of a transaction's function.
import type { Queryable, Sql, SqlValue, TransactionCompanion } from '../../contracts/db.ts'
import type { RunningTransaction } from '../../contracts/tracing.ts'
import { DbError } from '../../core/errors/catalogue.ts'
import { valuesOf } from '../../core/sql/fragment.ts'
import { type Outcome, queryable, TRANSACTION_IDLE_MS } from '../../stores/sql/database.ts'
import { idleTransactionRefused, refuseInTransaction } from '../../stores/sql/statement.ts'
import { toDbError } from './failure.ts'

/** Milliseconds between two calls of `onPulse`. */
export const PULSE_MS = 100

/** Where the statements of a transaction run: a connection of this thread, or a process. A process answers later. */
export interface TransactionSession {
  /** It has met a heavy statement: the transaction has to begin again in a process. */
  readonly mustMove: boolean
  run(sql: string, params: readonly SqlValue[]): Outcome | Promise<Outcome>
  commit(): void | Promise<void>
  /** Never fails because there is nothing to roll back. */
  rollback(): void | Promise<void>
}

/** What a transaction does. */
export interface TransactionWork {
  readonly work: (tx: Queryable) => Promise<unknown>
  /** Makes what goes with each run. Left out for a transaction of the runtime itself. */
  readonly accompany?: (() => TransactionCompanion) | undefined
  /** Measures what a companion has extended: a plugin calls it. */
  readonly instrument: <T extends object>(tx: T) => T
}

const NOTHING_LEFT = Promise.resolve()

type Ending = { readonly result: unknown } | { readonly thrown: unknown }

/**
 * One run of the function of a transaction, up to its end but without the commit.
 *
 * When a statement fails, further statements are refused and the transaction is to be rolled back, even when the function caught the error.
 * It is the same on PostgreSQL.
 */
export class TransactionRun {
  readonly session: TransactionSession
  companion: TransactionCompanion | null = null
  /** Resolves when it has ended. Never rejects. */
  readonly settled: Promise<void>
  readonly #running: RunningTransaction
  /** How it ended; null while it runs. */
  ending: Ending | null = null
  /** Called with true when its function has ended. */
  onEnd: ((hasEnded: boolean) => void) | null = null
  #isOver = false
  /** Why its statements are refused although it has not ended. */
  #refusal: DbError | null = null
  #failure: DbError | null = null
  /** Statements that have ended: a clock would cost more. */
  #endedCount = 0
  #runningCount = 0

  /** Calls the function. @param session has begun @param running is told when the function has ended */
  constructor(work: TransactionWork, session: TransactionSession, running: RunningTransaction) {
    this.session = session
    this.#running = running
    this.settled = this.#perform(work)
  }

  /** Not async: the one promise that follows that of the function is as few as can be. */
  #perform({ work, accompany, instrument }: TransactionWork): Promise<void> {
    let result: Promise<unknown>
    try {
      this.companion = accompany?.() ?? null
      const tx = queryable((sql, params) => this.send(sql, params))
      result = work(this.companion === null ? tx : instrument(this.companion.extend(tx)))
    } catch (thrown) {
      this.#end({ thrown })
      return NOTHING_LEFT
    }
    return Promise.resolve(result).then(
      (value) => {
        const pending = this.companion?.pending
        return pending === undefined ? this.#resolved(value) : pending.then(() => this.#resolved(value))
      },
      (thrown) => this.#end({ thrown }),
    )
  }

  #resolved(result: unknown): void {
    // Its connection belongs to another one by now, when it was refused.
    const fault = this.#failure ?? this.#refusal
    this.#end(fault === null ? { result } : { thrown: fault })
  }

  /** Runs the last statements of its companion, in a transaction that shares its commit with no other. @throws HeddleError */
  async runLast(): Promise<void> {
    const { companion } = this
    if (companion === null) return
    try {
      for (const { sql, params } of companion.lastStatements()) await this.session.run(sql, params)
    } catch (thrown) {
      const error = toDbError(thrown)
      throw companion.refusal?.(error) ?? error
    }
  }

  #end(ending: Ending): void {
    this.#isOver = true
    this.#running.isOpen = false
    this.ending ??= ending
    this.onEnd?.(true)
  }

  /** Ends it from outside. Its statements are refused from now on. */
  abandon(thrown: DbError): void {
    this.#refusal = thrown
    this.ending ??= { thrown }
  }

  /** Changes when a statement ends; -1 while one runs. */
  get activity(): number {
    return this.#runningCount > 0 ? -1 : this.#endedCount
  }

  /** Sends a statement of the function. @throws DbError */
  send(sql: string | Sql, params: readonly SqlValue[]): Outcome | Promise<Outcome> {
    if (this.#refusal?.kind === 'serialization') throw this.#refusal
    refuseInTransaction(this.#isOver || this.#refusal !== null, this.#failure)
    try {
      const outcome =
        typeof sql === 'string' ? this.session.run(sql, params) : this.session.run(sql.text, valuesOf(sql, params))
      if (outcome instanceof Promise) return this.#outcomeOf(outcome)
      this.#endedCount++
      return outcome
    } catch (thrown) {
      throw this.#fail(thrown)
    }
  }

  async #outcomeOf(outcome: Promise<Outcome>): Promise<Outcome> {
    this.#runningCount++
    try {
      return await outcome
    } catch (thrown) {
      throw this.#fail(thrown)
    } finally {
      this.#runningCount--
      this.#endedCount++
    }
  }

  #fail(thrown: unknown): DbError {
    this.#failure ??= toDbError(thrown)
    return this.#failure
  }
}

/**
 * Waits for the end of a run that takes its time.
 * @param onPulse called every 100 ms meanwhile
 * @param idleMs it is abandoned after so many milliseconds without a statement
 */
export async function endOf(run: TransactionRun, onPulse: () => void, idleMs = TRANSACTION_IDLE_MS): Promise<void> {
  let pulse: NodeJS.Timeout | undefined
  let [activity, sinceMs] = [run.activity, performance.now()]
  const idle = new Promise<void>((resolve) => {
    pulse = setInterval(() => {
      onPulse()
      const nowMs = performance.now()
      if (run.ending !== null) return resolve()
      if (run.activity === -1 || run.activity !== activity) [activity, sinceMs] = [run.activity, nowMs]
      if (nowMs - sinceMs < idleMs) return
      run.abandon(idleTransactionRefused(idleMs))
      resolve()
    }, PULSE_MS)
  })
  await Promise.race([run.settled, idle])
  clearInterval(pulse)
}

/** Its function was stopped with its lane. */
export function stoppedRefused(): DbError {
  return new DbError('unavailable', 'The transaction was rolled back: its lane was stopped while its function ran')
}

/** The run waits for something that may take long, and others would have to wait with it. */
export function beginsAgainAlone(): DbError {
  return new DbError('serialization', 'The transaction waits for more than its tx: it begins again by itself')
}
