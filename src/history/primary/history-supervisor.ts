import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { messageOf } from '../../core/errors/description.ts'
import { startThread } from '../../core/modules/typescript-thread.ts'
import { Reminder } from '../../core/schedule/reminder.ts'
import type { FromStore, HistorySource, StoreInit, ToStore } from '../messages.ts'
import type { HistoryQuery } from '../query.ts'

const THREAD_FILE = fileURLToPath(new URL('../store-thread/store-thread.ts', import.meta.url))
/** Milliseconds between two log lines about one trouble. */
const REMINDER_MS = 60_000
/** Milliseconds before a thread that died is replaced. */
const RESTART_MS = 1000
/** After so many threads in a row that ended before they came up, no further one is started. */
const STILLBORN_MAX = 3
const HEAP_MB = 128
/** Longest time for an answer, and for the last entries when the process ends. Milliseconds. */
const ANSWER_MS = 5000
const FLUSH_MS = 1000

interface Question {
  resolve: (answer: unknown) => void
  reject: (error: Error) => void
}

/** Starts the history's thread, restarts it when it dies, and asks it. */
export class HistorySupervisor {
  readonly #init: Omit<StoreInit, 'sources'>
  readonly #warn: (message: string) => void
  readonly #sources = new Map<number, HistorySource>()
  readonly #questions = new Map<number, Question>()
  readonly #reminder = new Reminder(REMINDER_MS)
  #thread: Worker | null = null
  #restartTimer: NodeJS.Timeout | undefined
  #nextQuestion = 0
  #stillborn = 0
  #isStopped = false
  #lastError = ''
  #onFlushed: () => void = () => {}

  constructor(init: Omit<StoreInit, 'sources'>, warn: (message: string) => void) {
    this.#init = init
    this.#warn = warn
  }

  start(): void {
    const workerData: StoreInit = { ...this.#init, sources: [...this.#sources.values()] }
    const thread = startThread(THREAD_FILE, {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
      name: 'history',
    })
    this.#thread = thread
    thread.on('message', (message: FromStore) => this.#onMessage(message))
    thread.on('error', (error) => {
      this.#lastError = messageOf(error)
    })
    thread.on('exit', () => this.#onExit())
    // The thread must not keep the process alive.
    thread.unref()
  }

  #onExit(): void {
    this.#thread = null
    this.#onFlushed()
    for (const { reject } of this.#questions.values()) reject(this.#off)
    this.#questions.clear()
    if (this.#isStopped) return
    if (++this.#stillborn >= STILLBORN_MAX) return this.#warn(`Requests are not kept: ${this.#lastError}`)
    this.#trouble(this.#lastError)
    this.#restartTimer = setTimeout(() => this.start(), RESTART_MS).unref()
  }

  add(source: HistorySource): void {
    this.#sources.set(source.id, source)
    this.#post({ type: 'source', source })
  }

  /** Its thread has ended. */
  remove(id: number): void {
    if (this.#sources.delete(id)) this.#post({ type: 'source-gone', id })
  }

  ask(query: HistoryQuery): Promise<unknown> {
    if (this.#thread === null) return Promise.reject(this.#off)
    const number = this.#nextQuestion++
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#questions.delete(number)
        reject(new Error(`The history has not answered within ${ANSWER_MS} ms`))
      }, ANSWER_MS)
      this.#questions.set(number, {
        resolve: (answer) => {
          clearTimeout(timer)
          resolve(answer)
        },
        reject: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      })
      this.#post({ type: 'query', number, query })
    })
  }

  get #off(): HeddleError {
    return new HeddleError('HISTORY_OFF', `No history of requests is kept: ${this.#lastError}`)
  }

  #post(message: ToStore): void {
    this.#thread?.postMessage(message)
  }

  #onMessage(message: FromStore): void {
    switch (message.type) {
      case 'up':
        this.#stillborn = 0
        return
      case 'trouble':
        return this.#trouble(message.why)
      case 'answer':
        return this.#take(message.number)?.resolve(message.answer)
      case 'failed':
        return this.#take(message.number)?.reject(new Error(message.why))
      case 'flushed':
        this.#onFlushed()
    }
  }

  #take(number: number): Question | undefined {
    const question = this.#questions.get(number)
    this.#questions.delete(number)
    return question
  }

  #trouble(why: string): void {
    if (this.#reminder.isDue()) this.#warn(`Requests are not kept in ${this.#init.path}: ${why}`)
  }

  /** Writes what is there, and ends the thread. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#restartTimer)
    const thread = this.#thread
    if (thread === null) return
    await new Promise<void>((resolve) => {
      this.#onFlushed = resolve
      setTimeout(resolve, FLUSH_MS)
      this.#post({ type: 'flush' })
    })
    await thread.terminate()
  }
}
