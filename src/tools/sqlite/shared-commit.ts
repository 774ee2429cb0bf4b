// The one way in which writes and transactions share a commit.
import type { TransactionCompanion } from '../../contracts/db.ts'
import type { CausalContext } from '../../contracts/tracing.ts'
import { DbError, HeddleError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'
import type { Outcome } from '../../stores/sql/database.ts'
import type { SqliteConnection } from './connection.ts'
import { isBusy, isConstraint, toDbError } from './failure.ts'
import { LaneSession } from './heavy-statements.ts'
import { type Item, noteRun, type Transaction, type Write } from './queued.ts'
import { beginsAgainAlone, stoppedRefused, type TransactionRun } from './transaction.ts'

/** Most writes and transactions in one commit. */
export const MAX_ITEMS = 512
/** After so many milliseconds what has run is committed, so that the event loop and other threads get their turn. */
const MAX_BATCH_MS = 5

/** Calls `answer` when everything that is committed by now is as safe as the settings want; `fail` when the disk did not take it. */
export type Settle = (answer: () => void, fail: (error: DbError) => void) => void

/**
 * Tells runs that wait for nothing but their `tx` from others. Statements answer at once, so the former end while the thread works off
 * promises. The first tick after that finds the latter still running.
 */
class Quiet {
  #isArmed = false
  #answer: (isPrompt: boolean) => void = () => {}

  /** True when the run, which has not ended, ends before the thread has no promise left to go on with. */
  outlasts(run: TransactionRun): Promise<boolean> {
    if (!this.#isArmed) {
      this.#isArmed = true
      // From within a promise: a tick that is asked for elsewhere may come before the promises.
      void Promise.resolve().then(() => process.nextTick(() => this.#tick()))
    }
    return new Promise((resolve) => {
      this.#answer = resolve
      run.onEnd = resolve
    })
  }

  #tick(): void {
    this.#isArmed = false
    this.#answer(false)
  }
}

/** The front of the queue. */
export interface Front {
  peek(): Item | undefined
  /** The item behind that. */
  peekSecond(): Item | undefined
  take(): void
  /** They run again, before all others and in this order. */
  putBack(items: readonly (Write | Transaction)[]): void
}

/** A transaction that waits for more than its `tx`. The connection is its own until it has ended. */
export interface Late {
  readonly item: Transaction
  readonly run: TransactionRun
}

/** `done`: the others go on. `busy`: nothing has run, for SQLite's lock is taken. */
type BatchEnd = 'done' | 'busy' | Late

interface Part {
  readonly item: Write | Transaction
  /** Of a write. */
  readonly outcome: Outcome | DbError | null
  readonly run: TransactionRun | null
  readonly wrote: boolean
}

/** A transaction whose function has been called. */
interface Begun {
  readonly item: Transaction
  readonly isFirst: boolean
  /** It has a savepoint. */
  readonly isPart: boolean
  readonly session: LaneSession
  readonly run: TransactionRun
}

/**
 * Runs the transactions and the writes at the front of the queue in one commit, one after the other, and answers them after it. A write by itself
 * is a commit.
 *
 * Writes have no savepoints: SQLite undoes a statement that fails by itself and leaves the transaction open
 * (https://sqlite.org/lang_conflict.html, ABORT).
 * A transaction has a savepoint, so that it can fail alone, unless the last runs of its function have all succeeded: savepoints cost a third
 * of a small transaction. When such a one fails nevertheless, all are undone and run again, now with savepoints. The first may be one that waits for more than its `tx`: it then goes on by
 * itself. Others follow only where that is not to be expected. When it happens nevertheless, the run is given up and undone, and the
 * transaction runs again by itself after the commit of those before it, which do not wait. When the commit is refused, or when SQLite
 * rolls back everything, each of them runs again by itself. What a transaction has read of those before it is thus never answered unless it is stored.
 */
export class SharedCommit {
  readonly #connection: SqliteConnection
  readonly #front: Front
  readonly #settle: Settle
  #parts: Part[] = []
  /** What runs; null once all has run. Within one turn of the event loop, unless that was stopped. */
  #current: Write | Transaction | null = null
  /** Of the current item, once its function has been called and has waited for something. */
  #run: TransactionRun | null = null
  #isGivenUp = false
  #hasDeferred = false

  constructor(connection: SqliteConnection, front: Front, settle: Settle) {
    this.#connection = connection
    this.#front = front
    this.#settle = settle
  }

  /**
   * Never rejects for what the items do. No await comes before the commit of writes, so that the lock is held only for synchronous work.
   * @param hasTransactions false: there are only writes
   */
  async run(hasTransactions: boolean): Promise<BatchEnd> {
    const connection = this.#connection
    const head = this.#front.peek()!
    if (head.kind === 'write' && this.#isByItself(head)) return this.#runAlone(head)
    try {
      connection.begin()
      // Of writes each is run again alone when the commit finds one violated.
      this.#hasDeferred = hasTransactions && connection.hasDeferredConstraints
    } catch (thrown) {
      if (isBusy(thrown)) return 'busy'
      this.#front.take()
      head.reject(toDbError(thrown))
      return 'done'
    }
    try {
      return await this.#runTogether()
    } catch (thrown) {
      // A fault of the connection itself: what was taken has no other answer.
      rollback(connection)
      for (const part of this.#parts) refuse(part, toDbError(thrown))
      this.#current?.reject(toDbError(thrown))
      this.#current = null
      return 'done'
    }
  }

  /** What ran in this thread was stopped before all had run: nothing here goes on. */
  get isCutOff(): boolean {
    return this.#current !== null
  }

  /**
   * Undoes all after it was cut off, and rejects the one that was stopped.
   * @param context of what was stopped; undefined: it is taken for the function that was running
   * @returns those that are to run again
   */
  giveUp(context: CausalContext | undefined): (Write | Transaction)[] {
    const current = this.#current!
    this.#isGivenUp = true
    this.#current = null
    rollback(this.#connection)
    const again = this.#parts.map(({ item }) => item)
    for (const { run } of this.#parts) run?.companion?.rolledBack()
    this.#parts = []
    this.#run?.companion?.rolledBack()
    if (current.kind === 'transaction' && current.wasStopped(context)) {
      this.#run?.abandon(stoppedRefused())
      current.fail(stoppedRefused())
    } else {
      this.#run?.abandon(beginsAgainAlone())
      again.push(current)
    }
    return again
  }

  #isByItself(write: Write): boolean {
    if (isAlone(write)) return true
    const second = this.#front.peekSecond()
    return second === undefined || second.kind === 'exclusive' || (second.kind === 'write' && isAlone(second))
  }

  #runAlone(write: Write): BatchEnd {
    try {
      const outcome = this.#connection.runAlone(write.sql, write.params)
      this.#settle(
        () => write.resolve(outcome),
        (error) => write.reject(error),
      )
    } catch (thrown) {
      if (isBusy(thrown)) return 'busy'
      write.reject(toDbError(thrown))
    }
    this.#front.take()
    return 'done'
  }

  async #runTogether(): Promise<BatchEnd> {
    const quiet = new Quiet()
    const endMs = performance.now() + MAX_BATCH_MS
    for (let item = this.#next(); item !== null; item = performance.now() < endMs ? this.#next() : null) {
      if (item.kind === 'write') {
        if (this.#write(item)) continue
        break
      }
      const begun = this.#begin(item)
      const isPrompt = begun.run.ending !== null || (await quiet.outlasts(begun.run))
      if (this.#isGivenUp) return 'done'
      const goesOn = this.#end(begun, isPrompt)
      if (goesOn === false) break
      if (goesOn === true) continue
      this.#current = null
      return goesOn
    }
    if (this.#parts.length > 0) this.#commit()
    else rollback(this.#connection)
    this.#current = null
    return 'done'
  }

  /** Takes the next item, if it may share the commit of those before it. */
  #next(): Write | Transaction | null {
    const item = this.#front.peek()
    if (item === undefined || item.kind === 'exclusive') return null
    const { length } = this.#parts
    if (length > 0) {
      if (length >= MAX_ITEMS || this.#connection.endsSharing) return null
      if (isAlone(item) || (item.kind === 'transaction' && item.promptness.score < 1)) return null
      const last = this.#parts.at(-1)!
      if (isAlone(last.item) || (this.#hasDeferred && last.wrote)) return null
    }
    this.#front.take()
    this.#current = item
    return item
  }

  /** False: no other follows. */
  #write(item: Write): boolean {
    let outcome: Outcome | DbError
    try {
      outcome = this.#connection.run(item.sql, item.params)
    } catch (thrown) {
      outcome = toDbError(thrown)
    }
    this.#parts.push({ item, outcome, run: null, wrote: true })
    return this.#connection.inTransaction || this.#lost()
  }

  #begin(item: Transaction): Begun {
    const connection = this.#connection
    const isFirst = this.#parts.length === 0
    const isGuarded = item.isGuarded || item.promptness.caution > 0
    const isPart = isGuarded && (!isFirst || this.#front.peek() !== undefined)
    if (isPart) connection.savepoint()
    connection.hasWritten = false
    const session = new LaneSession(connection)
    this.#run = null
    this.#run = item.start(session)
    return { item, isFirst, isPart, session, run: this.#run }
  }

  /** False: no other follows. */
  #end(begun: Begun, isPrompt: boolean): boolean | Late {
    const { item, isFirst, isPart, session, run } = begun
    const connection = this.#connection
    noteRun(item.promptness, isPrompt && !session.mustMove, run.ending !== null && 'result' in run.ending)
    if (!isPrompt) {
      if (isFirst) return { item, run }
      run.abandon(beginsAgainAlone())
      return this.#again(begun, 'alone')
    }
    const wrote = 'result' in run.ending! && (connection.hasWritten || run.companion?.hasLastStatements === true)
    const part = { item, outcome: null, run, wrote }
    if (!connection.inTransaction) {
      this.#parts.push(part)
      return this.#lost()
    }
    if (session.mustMove) return this.#again(begun, 'process')
    this.#parts.push(part)
    if ('result' in run.ending!) {
      if (isPart) connection.releaseSavepoint()
      return true
    }
    if (isPart) connection.rollbackToSavepoint()
    else if (isFirst) connection.rollback()
    else this.#allAgain()
    return isPart
  }

  /** The last one is undone, and run again by itself. */
  #again({ item, isPart, run }: Begun, mode: Transaction['mode']): false {
    run.companion?.rolledBack()
    item.mode = mode
    this.#front.putBack([item])
    if (this.#parts.length === 0) return false
    if (isPart) this.#connection.rollbackToSavepoint()
    else this.#allAgain()
    return false
  }

  /** The last one cannot be undone alone: all run again, with savepoints. */
  #allAgain(): void {
    this.#connection.rollback()
    for (const { item, run } of this.#parts) {
      run?.companion?.rolledBack()
      if (item.kind === 'transaction') item.isGuarded = true
    }
    this.#front.putBack(this.#parts.map(({ item }) => item))
    this.#parts = []
  }

  /** SQLite has rolled back everything. */
  #lost(): false {
    if (this.#parts.length > 1) this.#eachAlone()
    else this.#answer()
    this.#parts = []
    return false
  }

  #eachAlone(): void {
    for (const { item, run } of this.#parts) {
      run?.companion?.rolledBack()
      if (item.kind === 'write') item.isAlone = true
      else item.mode = 'alone'
    }
    this.#front.putBack(this.#parts.map(({ item }) => item))
  }

  #commit(): void {
    let isLast = true
    try {
      // Rolled back already: the only one has failed.
      if (this.#connection.inTransaction) {
        this.#runLast()
        isLast = false
        this.#connection.commit()
      }
    } catch (thrown) {
      rollback(this.#connection)
      if ((isLast || isConstraint(thrown)) && this.#parts.length > 1) this.#eachAlone()
      else for (const part of this.#parts) refuse(part, refusalOf(thrown))
      return
    }
    this.#answer()
  }

  /** The last statements of all: fewer than each has by itself. */
  #runLast(): void {
    const companions: TransactionCompanion[] = []
    for (const { run } of this.#parts) {
      if (run?.companion?.hasLastStatements && 'result' in run.ending!) companions.push(run.companion)
    }
    const [first, ...others] = companions
    if (first === undefined) return
    try {
      for (const { sql, params } of first.lastStatements(others)) this.#connection.run(sql, params)
    } catch (thrown) {
      const error = toDbError(thrown)
      throw first.refusal?.(error) ?? error
    }
  }

  #answer(): void {
    let written = this.#parts
    if (written.some(({ wrote }) => !wrote)) {
      for (const part of written) if (!part.wrote) answer(part)
      written = written.filter(({ wrote }) => wrote)
      if (written.length === 0) return
    }
    this.#settle(
      () => written.forEach(answer),
      (error) => {
        for (const part of written) doubt(part, error)
      },
    )
  }
}

/** Commits or rolls back a run that has ended by itself, and answers it. Never rejects. @returns false: it has to begin again in a process */
export async function finish({ item, run }: Late, wrote: () => boolean, settle: Settle): Promise<boolean> {
  const { session } = run
  const part: Part = { item, run, outcome: null, wrote: true }
  if ('result' in run.ending!) {
    try {
      await run.runLast()
      await session.commit()
      if (wrote()) {
        settle(
          () => answer(part),
          (error) => doubt(part, error),
        )
      } else answer(part)
      return true
    } catch (thrown) {
      await rollback(session)
      refuse(part, refusalOf(thrown))
      return true
    }
  }
  await rollback(session)
  if (!session.mustMove) answer(part)
  else run.companion?.rolledBack()
  return !session.mustMove
}

const isAlone = (item: Write | Transaction): boolean =>
  item.kind === 'write' ? item.isAlone || item.solitary : item.mode !== 'shared'

function answer({ item, outcome, run }: Part): void {
  if (item.kind === 'write') {
    if (outcome instanceof DbError) item.reject(outcome)
    else item.resolve(outcome!)
    return
  }
  const { ending, companion } = run!
  if ('result' in ending!) {
    companion?.committed()
    item.resolve(ending.result)
  } else {
    companion?.rolledBack()
    item.fail(ending!.thrown)
  }
}

/** The last statements of events have an error of their own. */
const refusalOf = (thrown: unknown): HeddleError => (isInstance(thrown, HeddleError) ? thrown : toDbError(thrown))

/** The commit has failed. */
function refuse(part: Part, error: HeddleError): void {
  const { item, outcome, run } = part
  if (outcome instanceof DbError || (run !== null && 'thrown' in run.ending!)) return answer(part)
  run?.companion?.rolledBack()
  if (item.kind === 'write') item.reject(toDbError(error))
  else item.fail(error)
}

/** It is committed, and may be lost in a power cut. */
function doubt({ item, run }: Part, error: DbError): void {
  run?.companion?.unknown(error)
  if (item.kind === 'write') item.reject(error)
  else item.fail(error)
}

async function rollback(session: { rollback(): void | Promise<void> }): Promise<void> {
  try {
    await session.rollback()
  } catch {
    // The first error matters more. The next `begin` of this connection rolls back what may be left.
  }
}
