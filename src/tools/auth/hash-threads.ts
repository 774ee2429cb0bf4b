import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { HeddleError } from '../../core/errors/catalogue.ts'

const THREAD_FILE = fileURLToPath(new URL('./hash-thread.cjs', import.meta.url))
/** JavaScript heap of a thread, MiB. What scrypt needs lies outside of it. */
const HEAP_MB = 16

/** What scrypt is asked for. Source of the names: RFC 7914. */
export interface Derivation {
  password: Uint8Array
  salt: Uint8Array
  keyBytes: number
  N: number
  r: number
  p: number
}

interface Job {
  id: string
  derivation: Derivation
  resolve: (key: Uint8Array) => void
  reject: (error: Error) => void
}

/**
 * Threads of the process that do nothing but derive keys, and a bounded queue before them. Threads are started when they are first needed; one
 * that dies costs the key that it derived, and the next one replaces it.
 */
export class HashThreads {
  readonly #maxThreads: number
  readonly #maxWaiting: number
  readonly #threads = new Set<Worker>()
  readonly #idle: Worker[] = []
  readonly #running = new Map<Worker, Job>()
  #waiting: Job[] = []
  #isClosed = false

  constructor(maxThreads: number, maxWaiting: number) {
    this.#maxThreads = maxThreads
    this.#maxWaiting = maxWaiting
  }

  /**
   * @param id for `abandon`
   * @throws AUTH_BUSY at once when the queue is full, AUTH_ABANDONED
   */
  derive(id: string, derivation: Derivation): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const isFree = this.#running.size < this.#maxThreads
      if (this.#isClosed || (!isFree && this.#waiting.length >= this.#maxWaiting)) {
        const why = this.#isClosed ? 'the process ends' : `${this.#waiting.length} wait already`
        return reject(new HeddleError('AUTH_BUSY', `Too many passwords are being hashed: ${why}`))
      }
      this.#waiting.push({ id, derivation, resolve, reject })
      this.#next()
    })
  }

  /** Gives up what nobody waits for. What has begun is finished, and its key dropped. */
  abandon(isAbandoned: (id: string) => boolean): void {
    const given = this.#waiting.filter(({ id }) => isAbandoned(id))
    this.#waiting = this.#waiting.filter(({ id }) => !isAbandoned(id))
    for (const { reject } of [...given, ...[...this.#running.values()].filter(({ id }) => isAbandoned(id))]) {
      reject(new HeddleError('AUTH_ABANDONED'))
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.abandon(() => true)
    await Promise.all([...this.#threads].map((thread) => thread.terminate()))
  }

  #next(): void {
    if (this.#waiting.length === 0 || this.#running.size >= this.#maxThreads) return
    const thread = this.#idle.pop() ?? this.#start()
    const job = this.#waiting.shift()!
    this.#running.set(thread, job)
    // While nothing is derived the threads must not keep the process alive.
    thread.ref()
    thread.postMessage(job.derivation)
  }

  #start(): Worker {
    // No loader, and no variable of the environment: it needs none.
    const thread = new Worker(THREAD_FILE, {
      execArgv: [],
      env: {},
      name: 'password hashing',
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    this.#threads.add(thread)
    thread.on('message', ({ key, fault }: { key?: Uint8Array; fault?: string }) => {
      const job = this.#running.get(thread)
      this.#running.delete(thread)
      this.#idle.push(thread)
      thread.unref()
      if (key !== undefined) job?.resolve(key)
      else job?.reject(new HeddleError('INTERNAL', `A key was not derived: ${fault}`))
      this.#next()
    })
    // The exit follows and takes care of its work.
    thread.on('error', () => {})
    thread.on('exit', () => {
      const job = this.#running.get(thread)
      this.#threads.delete(thread)
      this.#running.delete(thread)
      this.#idle.splice(0, this.#idle.length, ...this.#idle.filter((other) => other !== thread))
      job?.reject(new HeddleError('INTERNAL', 'The thread that hashed the password has ended'))
      this.#next()
    })
    return thread
  }
}
