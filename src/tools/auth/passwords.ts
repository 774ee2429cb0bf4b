// Hashes of passwords, by scrypt on threads of its own.

import { randomBytes, timingSafeEqual } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { steadyMs } from '../../core/schedule/clock.ts'

const THREAD_FILE = fileURLToPath(new URL('./hash-thread.cjs', import.meta.url))
/** JavaScript heap of a thread, MiB. What scrypt needs lies outside of it. */
const HEAP_MB = 16
/** Nobody waits longer for a thread, milliseconds: who would have to is refused at once, as far as that is known. */
const HASH_WAIT_MS = 5000
/** Part of the last derivation in the usual time of one. */
const LAST_SHARE = 0.25

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
  /** By `steadyMs`: when it came, and from then on when it began. */
  sinceMs: number
}

/**
 * Threads of the process that do nothing but derive keys, and a queue before them in which nobody waits for long. Threads are started when they are first needed; one
 * that dies costs the key that it derived, and the next one replaces it.
 */
export class HashThreads {
  readonly #maxThreads: number
  readonly #maxWaiting: number
  readonly #threads = new Set<Worker>()
  readonly #idle: Worker[] = []
  readonly #running = new Map<Worker, Job>()
  #waiting: Job[] = []
  /** How long one takes, milliseconds; 0 before the first. */
  #usualMs = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  readonly #waitMs: number

  constructor(maxThreads: number, maxWaiting: number, waitMs = HASH_WAIT_MS) {
    this.#maxThreads = maxThreads
    this.#waitMs = waitMs
    this.#maxWaiting = maxWaiting
  }

  /**
   * @param id for `abandon`
   * @throws AUTH_BUSY when it would wait too long, or has; AUTH_ABANDONED
   */
  derive(id: string, derivation: Derivation): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const why = this.#isClosed ? 'the process ends' : this.#busyFor()
      if (why !== null) return reject(busy(why))
      this.#waiting.push({ id, derivation, resolve, reject, sinceMs: steadyMs() })
      this.#next()
    })
  }

  /** Why another one cannot wait; null when it can. */
  #busyFor(): string | null {
    const ahead = this.#waiting.length
    if (this.#running.size < this.#maxThreads) return null
    if (ahead >= this.#maxWaiting) return `${ahead} wait already`
    const waitMs = ((ahead + 1) * this.#usualMs) / this.#maxThreads
    return waitMs > this.#waitMs ? `the last of ${ahead} waits ${Math.round(waitMs / 1000)} s` : null
  }

  /** They come in their order, so the first has waited longest. */
  #giveUpLate(): void {
    this.#timer = undefined
    const lateMs = steadyMs() - this.#waitMs
    while (this.#waiting.length > 0 && this.#waiting[0]!.sinceMs <= lateMs)
      this.#waiting.shift()!.reject(busy(`it has waited ${Math.round(this.#waitMs / 1000)} s`))
    this.#watch()
  }

  #watch(): void {
    const first = this.#waiting[0]
    if (first === undefined || this.#timer !== undefined) return
    const leftMs = Math.max(1, Math.ceil(first.sinceMs + this.#waitMs - steadyMs()))
    this.#timer = setTimeout(() => this.#giveUpLate(), leftMs).unref()
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
    clearTimeout(this.#timer)
    this.abandon(() => true)
    await Promise.all([...this.#threads].map((thread) => thread.terminate()))
  }

  #next(): void {
    if (this.#waiting.length === 0 || this.#running.size >= this.#maxThreads) return this.#watch()
    const thread = this.#idle.pop() ?? this.#start()
    const job = this.#waiting.shift()!
    job.sinceMs = steadyMs()
    this.#running.set(thread, job)
    // While nothing is derived the threads must not keep the process alive.
    thread.ref()
    thread.postMessage(job.derivation)
  }

  #took(ms: number): void {
    this.#usualMs = this.#usualMs === 0 ? ms : this.#usualMs + (ms - this.#usualMs) * LAST_SHARE
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
      if (job !== undefined) this.#took(steadyMs() - job.sinceMs)
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

const busy = (why: string): HeddleError => new HeddleError('AUTH_BUSY', `Too many passwords are being hashed: ${why}`)

/** Runs scrypt, elsewhere. */
type Derive = (derivation: Derivation) => Promise<Uint8Array>

const MAX_PASSWORD_BYTES = 1024
const SALT_BYTES = 16
const KEY_BYTES = 32

// One of the scrypt settings of the OWASP Password Storage Cheat Sheet: 32 MiB, three passes.
const COST = { N: 2 ** 15, r: 8, p: 3 }

// Largest parameters of a stored hash. A hash is data, and data must not be able to exhaust the process.
const MAX_COST = { N: 2 ** 18, r: 16, p: 16, bytes: 256 * 1024 * 1024 }

/**
 * `scrypt$N$r$p$salt$hash`, the last two in base64url. Old hashes still verify when the settings change.
 * @throws AUTH_INVALID_INPUT for a password that is not a string of 1 to 1024 bytes of UTF-8
 */
export async function hashPassword(password: string, derive: Derive): Promise<string> {
  const text = normalized(password)
  if (text === undefined) {
    throw new HeddleError('AUTH_INVALID_INPUT', `A password must be a string of 1 to ${MAX_PASSWORD_BYTES} bytes`)
  }
  const salt = randomBytes(SALT_BYTES)
  const key = Buffer.from(await derive({ password: Buffer.from(text), salt, keyBytes: KEY_BYTES, ...COST }))
  return `scrypt$${COST.N}$${COST.r}$${COST.p}$${salt.toString('base64url')}$${key.toString('base64url')}`
}

/** False for a wrong password, for a password that could not have been hashed, and for a hash that `hashPassword` did not make. */
export async function verifyPassword(password: string, hash: string, derive: Derive): Promise<boolean> {
  const text = normalized(password)
  const stored = parseHash(hash)
  if (text === undefined || stored === undefined) return false
  const { N, r, p, salt } = stored
  const key = await derive({ password: Buffer.from(text), salt, keyBytes: stored.key.length, N, r, p })
  return timingSafeEqual(key, stored.key)
}

/** The password in one Unicode normal form, because a letter may have several encodings (RFC 8265, section 4.2); undefined when it is too short or too long. */
function normalized(password: unknown): string | undefined {
  if (typeof password !== 'string' || password.length > MAX_PASSWORD_BYTES) return undefined
  const text = password.normalize('NFC')
  const bytes = Buffer.byteLength(text)
  return bytes >= 1 && bytes <= MAX_PASSWORD_BYTES ? text : undefined
}

interface StoredHash extends Pick<Derivation, 'N' | 'r' | 'p'> {
  salt: Buffer
  key: Buffer
}

function parseHash(hash: unknown): StoredHash | undefined {
  const parts =
    typeof hash === 'string' ? /^scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([\w-]+)\$([\w-]+)$/.exec(hash) : null
  if (!parts) return undefined
  const [N, r, p] = parts.slice(1, 4).map(Number) as [number, number, number]
  const [salt, key] = parts.slice(4).map((part) => Buffer.from(part, 'base64url')) as [Buffer, Buffer]
  const isPowerOfTwo = N > 1 && (N & (N - 1)) === 0
  const isAffordable = N <= MAX_COST.N && r <= MAX_COST.r && p <= MAX_COST.p && 128 * N * r <= MAX_COST.bytes
  const isSized = salt.length >= 8 && salt.length <= 64 && key.length >= 16 && key.length <= 64
  return isPowerOfTwo && r > 0 && p > 0 && isAffordable && isSized ? { N, r, p, salt, key } : undefined
}
