import { WAIT_MS } from '../../stores/sql/limits.ts'
import { type Answer, failed, type Order } from './process-messages.ts'
import { StatementProcess } from './statement-process.ts'

/** Heavy statements that run at the same time, in all lanes together. One place is kept for a statement that writes. */
const MAX_PROCESSES = 4
const MAX_READING = MAX_PROCESSES - 1
/** A process without work ends after so many milliseconds. */
const IDLE_MS = 60_000

interface Waiter {
  readonly order: Order
  readonly timer: NodeJS.Timeout
  resolve(process: StatementProcess | Answer): void
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
  async perform(order: Order): Promise<Answer> {
    if (order.session !== null) return this.#continue(order, order.session)
    const process = await this.#acquire(order)
    if (!(process instanceof StatementProcess)) return process
    const answer = await process.perform(order, this.#limitMs)
    if (order.action !== 'begin' || answer.error !== undefined) {
      this.#release(process)
      return answer
    }
    const session = this.#nextSession++
    this.#sessions.set(session, process)
    return { session }
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

  #acquire(order: Order): Promise<StatementProcess | Answer> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        order,
        resolve,
        timer: setTimeout(() => {
          const message = `Waited ${WAIT_MS} ms for one of ${MAX_PROCESSES} processes that run long statements`
          this.#give(waiter, failed('timeout', message))
        }, WAIT_MS),
      }
      this.#waiters.push(waiter)
      void this.#assign()
    })
  }

  /** Gives processes to those who wait, as far as there are any. */
  async #assign(): Promise<void> {
    const reading = [...this.#busy].filter(({ writes }) => !writes).length
    const waiter = this.#waiters.find(({ order }) => order.writes || reading < MAX_READING)
    if (waiter === undefined || this.#busy.size >= MAX_PROCESSES || this.#isStopped) return
    this.#waiters = this.#waiters.filter((other) => other !== waiter)
    clearTimeout(waiter.timer)
    const { value: idle } = this.#idle.keys().next()
    const process = idle ?? this.#fork()
    clearTimeout(this.#idle.get(process))
    this.#idle.delete(process)
    process.threadId = waiter.order.threadId
    process.writes = waiter.order.writes
    this.#busy.add(process)
    void this.#assign()
    const answer = idle === undefined ? await process.started : {}
    if (answer.error === undefined) return waiter.resolve(process)
    this.#release(process)
    waiter.resolve(answer)
  }

  #fork(): StatementProcess {
    const process: StatementProcess = new StatementProcess(this.#path, this.#synchronous, () => {
      clearTimeout(this.#idle.get(process))
      this.#idle.delete(process)
      for (const [session, other] of this.#sessions) if (other === process) this.#sessions.delete(session)
      if (this.#busy.delete(process)) void this.#assign()
    })
    return process
  }

  #release(process: StatementProcess): void {
    this.#busy.delete(process)
    process.threadId = null
    if (process.isUsable && !this.#isStopped) {
      this.#idle.set(process, setTimeout(() => process.kill(failed('unavailable', 'idle')), IDLE_MS).unref())
    }
    void this.#assign()
  }

  #give(waiter: Waiter, answer: Answer): void {
    clearTimeout(waiter.timer)
    this.#waiters = this.#waiters.filter((other) => other !== waiter)
    waiter.resolve(answer)
  }
}
