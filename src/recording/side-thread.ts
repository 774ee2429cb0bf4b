/** The primary's end of a thread beside all others that reads their rings: one keeps the history, one sends spans. */
import { fileURLToPath } from 'node:url'
import { Worker, type WorkerOptions } from 'node:worker_threads'
import type { RecordingInit } from '../contracts/tracing.ts'
import { environmentWithoutAgents } from '../core/config/node-options.ts'
import { HeddleError } from '../core/errors/catalogue.ts'
import { messageOf } from '../core/errors/description.ts'
import { anchorHere } from '../core/schedule/clock.ts'
import { withTimeout } from '../core/schedule/waiting.ts'
import { letGo } from '../transport/memory/garbage.ts'
import { createRecordRing } from './ring.ts'

const PRELOAD = fileURLToPath(new URL('../preload.cjs', import.meta.url))

/** Milliseconds before a thread that died is replaced. */
const RESTART_MS = 1000
/** Longest time for an answer. Milliseconds. */
const ANSWER_MS = 5000

/** A thread that records, and its ring. */
export interface ThreadRing {
  readonly id: number
  readonly ring: SharedArrayBuffer
  /** `primary`, or a lane's number. */
  readonly thread: 'primary' | number
}

/** What the thread is started with. */
export interface SideThreadData {
  readonly init: unknown
  readonly rings: readonly ThreadRing[]
}

export type ToSideThread =
  | { type: 'ring'; ring: ThreadRing }
  /** The thread has ended: its ring is read once more, then forgotten. */
  | { type: 'ring-gone'; id: number }
  | { type: 'question'; number: number; question: unknown }
  /** The process is about to end: what comes from now on is not to wait for more. */
  | { type: 'hurry' }
  /** Finish what is there within so many milliseconds, and answer with `flushed`. */
  | { type: 'flush'; withinMs: number }

export type FromSideThread =
  | { type: 'up' }
  | { type: 'news'; news: unknown }
  | { type: 'answer'; number: number; answer: unknown }
  | { type: 'failed'; number: number; why: string }
  /** `left`: records that could not be finished. */
  | { type: 'flushed'; left: number }

interface SideThreadOptions<News> {
  readonly file: string
  readonly name: string
  readonly heapMb: number
  /** Of the ring of one thread. */
  readonly ringBytes: number
  /** After so many threads in a row that ended before they came up, no further one is started. */
  readonly stillbornMax: number
  readonly init: unknown
  /** What the thread tells by itself. */
  onNews(news: News): void
  /** It has died. @param isLast no further one is started */
  onDeath(why: string, isLast: boolean): void
}

/** Its end is waited for this long, milliseconds. */
const TERMINATE_MS = 500

interface Question {
  resolve: (answer: unknown) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

/** Starts the thread, replaces it when it dies, asks it, and makes the rings that it reads. */
export class SideThread<News> {
  readonly #options: SideThreadOptions<News>
  /** Of all threads that record. */
  readonly #clock = anchorHere()
  readonly #rings = new Map<SharedArrayBuffer, ThreadRing>()
  readonly #questions = new Map<number, Question>()
  #thread: Worker | null = null
  #restartTimer: NodeJS.Timeout | undefined
  #lastId = 0
  #nextQuestion = 0
  #stillborn = 0
  #isStopped = false
  #lastError = ''
  #onFlushed: (left: number | null) => void = () => {}

  constructor(options: SideThreadOptions<News>) {
    this.#options = options
  }

  /** What was recorded before waits in the rings. */
  start(): void {
    const { file, name, heapMb, init } = this.#options
    const workerData: SideThreadData = { init, rings: [...this.#rings.values()] }
    const thread = startThread(file, { workerData, resourceLimits: { maxOldGenerationSizeMb: heapMb }, name })
    this.#thread = thread
    thread.on('message', (message: FromSideThread) => this.#onMessage(message))
    thread.on('error', (error) => {
      this.#lastError = messageOf(error)
    })
    thread.on('exit', () => this.#onExit())
    // The thread must not keep the process alive.
    thread.unref()
  }

  #onExit(): void {
    this.#thread = null
    this.#onFlushed(null)
    for (const number of this.#questions.keys()) this.#take(number)?.reject(this.#off)
    if (this.#isStopped) return
    const isLast = ++this.#stillborn >= this.#options.stillbornMax
    if (!isLast) this.#restartTimer = setTimeout(() => this.start(), RESTART_MS).unref()
    this.#options.onDeath(this.#lastError, isLast)
  }

  /** Makes what a thread needs that records. */
  open(thread: 'primary' | number): RecordingInit {
    const ring = createRecordRing(this.#options.ringBytes)
    const own = { id: ++this.#lastId, ring, thread }
    this.#rings.set(ring, own)
    this.#post({ type: 'ring', ring: own })
    return { ring, clock: this.#clock }
  }

  /** The thread that records has ended. What it has left in its ring is still read. */
  gone({ ring }: RecordingInit): void {
    const own = this.#rings.get(ring)
    if (own === undefined) return
    this.#rings.delete(ring)
    letGo(ring)
    this.#post({ type: 'ring-gone', id: own.id })
  }

  ask(question: unknown): Promise<unknown> {
    if (this.#thread === null) return Promise.reject(this.#off)
    const number = this.#nextQuestion++
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#take(number)?.reject(new Error(`The ${this.#options.name} has not answered within ${ANSWER_MS} ms`))
      }, ANSWER_MS)
      this.#questions.set(number, { resolve, reject, timer })
      this.#post({ type: 'question', number, question })
    })
  }

  get #off(): HeddleError {
    return new HeddleError('HISTORY_OFF', `No history of requests is kept: ${this.#lastError}`)
  }

  #post(message: ToSideThread): void {
    this.#thread?.postMessage(message)
  }

  #onMessage(message: FromSideThread): void {
    switch (message.type) {
      case 'up':
        this.#stillborn = 0
        return
      case 'news':
        return this.#options.onNews(message.news as News)
      case 'answer':
        return this.#take(message.number)?.resolve(message.answer)
      case 'failed':
        return this.#take(message.number)?.reject(new Error(message.why))
      case 'flushed':
        this.#onFlushed(message.left)
    }
  }

  #take(number: number): Question | undefined {
    const question = this.#questions.get(number)
    this.#questions.delete(number)
    clearTimeout(question?.timer)
    return question
  }

  hurry(): void {
    this.#post({ type: 'hurry' })
  }

  /** Ends the thread when it has finished what is there, or when the time is up. @returns how much was left; null: nobody knows */
  async stop(withinMs: number): Promise<number | null> {
    this.#isStopped = true
    clearTimeout(this.#restartTimer)
    const thread = this.#thread
    if (thread === null) return null
    const flushed = new Promise<number | null>((resolve) => {
      this.#onFlushed = resolve
    })
    this.#post({ type: 'flush', withinMs: withinMs * 0.9 })
    const left = await withTimeout(flushed, withinMs, null)
    // A native call of it may be under way: the end of the process does not wait for it.
    await withTimeout(thread.terminate(), TERMINATE_MS, undefined)
    return left
  }
}

/** Starts a thread that runs a source file. Node does not accept every `.ts` file for a thread, so the thread loads it after the loader. */
function startThread(file: string, options: Omit<WorkerOptions, 'eval' | 'execArgv' | 'env'>): Worker {
  const start = [PRELOAD, file].map((path) => `require(${JSON.stringify(path)})`).join('\n')
  return new Worker(start, { ...options, eval: true, execArgv: [], env: environmentWithoutAgents() })
}
