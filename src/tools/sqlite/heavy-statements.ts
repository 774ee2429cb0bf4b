// The processes in which statements run that may run for long.

import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { deserialize, serialize } from 'node:v8'
import { threadId } from 'node:worker_threads'
import type { SqlValue } from '../../contracts/db.ts'
import { environmentWithoutAgents } from '../../core/config/node-options.ts'
import { DbError, type DbErrorKind } from '../../core/errors/catalogue.ts'
import { movedMemory, movedMs } from '../../core/schedule/moved-time.ts'
import { type Outcome, WAIT_MS } from '../../stores/sql/database.ts'
import type { SqliteConnection } from './connection.ts'
import type { TransactionSession } from './transaction.ts'

/** What a lane asks of a process for heavy statements, through the primary. */
export interface Order {
  /** `threadId` of the lane's thread: when it ends, so does what it has ordered. */
  readonly threadId: number
  /** A transaction that has begun; null: a statement by itself, or `begin`. */
  readonly session: number | null
  readonly action: 'run' | 'begin' | 'commit' | 'rollback'
  /** It takes the write lock. */
  readonly writes: boolean
  readonly sql?: string
  /** By how much a test has moved the time; left out outside of a test. */
  readonly movedMs?: number
  /** Packed. */
  readonly params?: string
}

/** The answer: JSON, because it travels between threads and processes. */
export interface Answer {
  readonly session?: number
  /** Packed. */
  readonly outcome?: string
  readonly error?: { readonly kind: DbErrorKind; readonly message: string }
}

// Values that JSON does not have, integers of 64 bits and bytes, arrive as they were.
const pack = (value: unknown): string => serialize(value).toString('base64')
const unpack = (packed: string): unknown => deserialize(Buffer.from(packed, 'base64'))

const packParams = (params: readonly SqlValue[]): string => pack([...params])
export const unpackParams = (packed: string): unknown[] => unpack(packed) as unknown[]
export const packOutcome = (outcome: Outcome): string => pack(outcome)

/** @throws DbError of the answer */
function outcomeOf(answer: Answer): Outcome {
  if (answer.error !== undefined) throw new DbError(answer.error.kind, answer.error.message)
  return answer.outcome === undefined ? { rowCount: 0, rows: [] } : (unpack(answer.outcome) as Outcome)
}

export const failed = (kind: DbErrorKind, message: string): Answer => ({ error: { kind, message } })

const ENTRY = fileURLToPath(new URL('./statement-child.ts', import.meta.url))
/** Rows of one answer that do not fit end the process, not the machine. */
const HEAP_MB = 256
/** Options of this process that are for itself alone. */
const OWN_OPTION = /^--(?:inspect|debug|cpu-prof|heap-prof|prof|max-old-space-size|watch|test)/

/** One process that runs heavy statements. It has at most one at a time. */
class StatementProcess {
  readonly #child: ChildProcess
  readonly #onEnd: () => void
  #answer: ((answer: Answer) => void) | null = null
  /** Why it was killed. */
  #reason: Answer | null = null
  /** The thread that it works for; null while it is idle. */
  threadId: number | null = null
  writes = false
  hasEnded = false

  /** @param onEnd called once, however it ends */
  constructor(path: string, synchronous: string, onEnd: () => void) {
    const execArgv = process.execArgv.filter((option) => !OWN_OPTION.test(option))
    // Loaded on demand: few applications have a heavy statement.
    const { fork } = process.getBuiltinModule('node:child_process')
    this.#child = fork(ENTRY, movedMemory() === null ? [path, synchronous] : [path, synchronous, 'moved'], {
      execArgv: [...execArgv, `--max-old-space-size=${HEAP_MB}`],
      env: environmentWithoutAgents(),
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    this.#onEnd = onEnd
    this.#child.on('message', (answer: Answer) => this.#settle(answer))
    this.#child.on('error', (error) => this.#ended(error.message))
    this.#child.on('exit', (code, signal) => this.#ended(`it ended with ${signal ?? code}`))
  }

  /** False once it is about to end. */
  get isUsable(): boolean {
    return this.#reason === null && !this.hasEnded
  }

  /** Resolves when it takes orders; with an error when it does not come up. */
  get started(): Promise<Answer> {
    return this.#next()
  }

  /** @param limitMs it is killed when it takes longer */
  async perform(order: Order, limitMs: number): Promise<Answer> {
    if (!this.isUsable) return this.#reason ?? failed('unavailable', 'The process of this transaction has ended')
    const answer = this.#next()
    const timer = setTimeout(() => this.kill(timeoutOf(limitMs)), limitMs)
    this.#child.send(movedMemory() === null ? order : { ...order, movedMs: movedMs() }, (error) => {
      if (error !== null) this.kill(failed('unavailable', error.message))
    })
    try {
      return await answer
    } finally {
      clearTimeout(timer)
    }
  }

  kill(reason: Answer): void {
    this.#reason ??= reason
    this.#child.kill('SIGKILL')
  }

  #next(): Promise<Answer> {
    this.#child.ref()
    this.#child.channel?.ref()
    return new Promise((resolve) => {
      this.#answer = resolve
    })
  }

  #settle(answer: Answer): void {
    const settle = this.#answer
    this.#answer = null
    // While nobody waits for it, it must not keep this process from ending.
    this.#child.unref()
    this.#child.channel?.unref()
    settle?.(answer)
  }

  #ended(why: string): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.#reason ??= failed(
      'unavailable',
      `The process of the statement is gone: ${why}. A result of more than ${HEAP_MB} MiB ends it, too`,
    )
    this.#settle(this.#reason)
    this.#onEnd()
  }
}

function timeoutOf(limitMs: number): Answer {
  return failed('timeout', `The statement was ended after ${limitMs} ms (RDB_STATEMENT_TIMEOUT_MS)`)
}

/** Heavy statements that run at the same time, in all lanes together. One place is kept for a statement that writes. */
const MAX_PROCESSES = 4
const MAX_READING = MAX_PROCESSES - 1
/** A process without work ends after so many milliseconds. */
const IDLE_MS = 60_000

interface Waiter {
  readonly order: Order
  readonly timer: NodeJS.Timeout
  resolve(answer: Answer | Promise<Answer>): void
}

/** In the primary: the processes in which heavy statements run. The first one starts with the first such statement. */
export class StatementProcesses {
  readonly #path: string
  readonly #synchronous: string
  readonly #limitMs: number
  readonly #busy = new Set<StatementProcess>()
  readonly #idle = new Map<StatementProcess, NodeJS.Timeout>()
  readonly #sessions = new Map<number, StatementProcess>()
  #waiters: Waiter[] = []
  #nextSession = 1
  #isStopped = false

  /** @param limitMs time limit of a statement */
  constructor(path: string, synchronous: 'full' | 'normal', limitMs: number) {
    this.#path = path
    this.#synchronous = synchronous === 'full' ? 'FULL' : 'NORMAL'
    this.#limitMs = limitMs
  }

  /** Never rejects. */
  perform(order: Order): Promise<Answer> {
    if (order.session !== null) return this.#continue(order, order.session)
    return new Promise((resolve) => {
      const message = `Waited ${WAIT_MS} ms for one of ${MAX_PROCESSES} processes that run long statements`
      const timer = setTimeout(() => this.#give(waiter, failed('timeout', message)), WAIT_MS)
      const waiter: Waiter = { order, timer, resolve }
      this.#waiters.push(waiter)
      this.#assign()
    })
  }

  /** The thread has ended: nobody waits for its statements. */
  threadGone(threadId: number): void {
    const gone = failed('unavailable', 'The lane has ended')
    for (const process of this.#busy) if (process.threadId === threadId) process.kill(gone)
    for (const waiter of this.#waiters.filter(({ order }) => order.threadId === threadId)) this.#give(waiter, gone)
  }

  stop(): void {
    this.#isStopped = true
    const stopped = failed('unavailable', 'The database is closed')
    for (const waiter of [...this.#waiters]) this.#give(waiter, stopped)
    for (const process of [...this.#busy, ...this.#idle.keys()]) process.kill(stopped)
  }

  async #continue(order: Order, session: number): Promise<Answer> {
    const process = this.#sessions.get(session)
    if (process === undefined) return failed('unavailable', 'The transaction is over')
    const answer = await process.perform(order, this.#limitMs)
    if (order.action !== 'run' || !process.isUsable) {
      this.#sessions.delete(session)
      // A commit that failed leaves the transaction open, and the next statement must not be in it.
      if (answer.error !== undefined) process.kill(answer)
      this.#release(process)
    }
    return answer
  }

  /** Gives processes to those who wait, as far as there are any. */
  #assign(): void {
    const reading = [...this.#busy].filter(({ writes }) => !writes).length
    const waiter = this.#waiters.find(({ order }) => order.writes || reading < MAX_READING)
    if (waiter === undefined || this.#busy.size >= MAX_PROCESSES || this.#isStopped) return
    const [idle] = this.#idle.keys()
    const process = idle ?? this.#fork()
    clearTimeout(this.#idle.get(process))
    this.#idle.delete(process)
    process.threadId = waiter.order.threadId
    process.writes = waiter.order.writes
    this.#busy.add(process)
    this.#give(waiter, this.#begin(process, waiter.order, idle === undefined))
    this.#assign()
  }

  /** The first order of a process that was idle, or of a new one. */
  async #begin(process: StatementProcess, order: Order, isNew: boolean): Promise<Answer> {
    const started = isNew ? await process.started : {}
    const answer = started.error === undefined ? await process.perform(order, this.#limitMs) : started
    if (order.action !== 'begin' || answer.error !== undefined) {
      this.#release(process)
      return answer
    }
    const session = this.#nextSession++
    this.#sessions.set(session, process)
    return { session }
  }

  #fork(): StatementProcess {
    const process: StatementProcess = new StatementProcess(this.#path, this.#synchronous, () => {
      clearTimeout(this.#idle.get(process))
      this.#idle.delete(process)
      for (const [session, other] of this.#sessions) if (other === process) this.#sessions.delete(session)
      if (this.#busy.delete(process)) this.#assign()
    })
    return process
  }

  #release(process: StatementProcess): void {
    this.#busy.delete(process)
    process.threadId = null
    if (process.isUsable && !this.#isStopped) {
      this.#idle.set(process, setTimeout(() => process.kill(failed('unavailable', 'idle')), IDLE_MS).unref())
    }
    this.#assign()
  }

  #give(waiter: Waiter, answer: Answer | Promise<Answer>): void {
    clearTimeout(waiter.timer)
    this.#waiters = this.#waiters.filter((other) => other !== waiter)
    waiter.resolve(answer)
  }
}

export type SendOrder = (order: Order) => Promise<Answer>

/** Runs one statement by itself where it can be ended. @throws DbError */
export async function runHeavy(
  send: SendOrder,
  sql: string,
  params: readonly SqlValue[],
  writes: boolean,
): Promise<Outcome> {
  return outcomeOf(await send({ threadId, session: null, action: 'run', writes, sql, params: packParams(params) }))
}

/** A transaction in this thread, up to its first heavy statement: with that one it begins again in a process. */
export class LaneSession implements TransactionSession {
  readonly #connection: SqliteConnection
  mustMove = false

  /** @param connection on which the transaction has begun */
  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  run(sql: string, params: readonly SqlValue[]): Outcome {
    const statement = this.#connection.statement(sql)
    if (statement.isHeavy(params)) {
      this.mustMove = true
      throw new DbError('serialization', 'The transaction begins again where its long statement can be ended')
    }
    return this.#connection.runStatement(statement, params)
  }

  commit(): void {
    this.#connection.commit()
  }

  rollback(): void {
    this.#connection.rollback()
  }
}

/** A transaction in a process for heavy statements. Its statements run one after another. */
export class ProcessSession implements TransactionSession {
  readonly mustMove = false
  readonly #send: SendOrder
  readonly #id: number
  #last: Promise<unknown> = Promise.resolve()
  #failure: unknown

  private constructor(send: SendOrder, id: number) {
    this.#send = send
    this.#id = id
  }

  /** @throws DbError */
  static async begin(send: SendOrder): Promise<ProcessSession> {
    const answer = await send({ threadId, session: null, action: 'begin', writes: true })
    outcomeOf(answer)
    return new ProcessSession(send, answer.session!)
  }

  run(sql: string, params: readonly SqlValue[]): Promise<Outcome> {
    return this.#next('run', { sql, params: packParams(params) })
  }

  async commit(): Promise<void> {
    await this.#next('commit', {})
  }

  async rollback(): Promise<void> {
    this.#failure = undefined
    await this.#next('rollback', {})
  }

  #next(action: Order['action'], statement: Pick<Order, 'sql' | 'params'>): Promise<Outcome> {
    const result = this.#last.then(async () => {
      if (this.#failure !== undefined) throw this.#failure
      return outcomeOf(await this.#send({ threadId, session: this.#id, action, writes: true, ...statement }))
    })
    this.#last = result.catch((thrown) => {
      this.#failure ??= thrown
    })
    return result
  }
}
