/// <reference lib="es2024.sharedmemory" />
import { threadId } from 'node:worker_threads'

// Taken before plugins can replace them.
const { compareExchange, exchange, load, notify, store, waitAsync } = Atomics

/**
 * Orders the writers of all threads before they reach SQLite's own lock, and waits without blocking the event loop.
 *
 * Memory (Int32 words):
 *   0  OWNER   0 when free, else thread id + 1. Changed by compare-and-swap only.
 *   1  LEASE   when the owner last showed that it lives: milliseconds of the process-wide monotonic clock, wrapping.
 *   2  WANTED  1 when a thread waits. Set by waiters, cleared by the owner as it takes and as it releases the lock.
 *
 * Progress: an owner whose lease is older than LEASE_MS loses the lock to a waiter, so a thread that died holding it delays the
 * others, and never stops them. If that owner was only slow, two threads believe to own the lock; that is safe, because
 * SQLite's file lock decides in the end and this one only keeps the threads from colliding there.
 */
const OWNER = 0
const LEASE = 1
const WANTED = 2

/** Milliseconds after which an owner that has not renewed its lease is taken for dead. */
export const LEASE_MS = 500
/** Milliseconds between two looks at the lease of an owner that holds on. */
const LOOK_MS = 50
/** Milliseconds that a thread leaves to the waiters before it takes the lock again. */
const YIELD_MS = 2

export class WriteLock {
  readonly #words: Int32Array
  readonly #self: number
  /** Until when (`performance.now()`) this thread leaves the lock to others; 0 when no thread waited. */
  #yieldUntilMs = 0

  /** @param memory at least 64 bytes, shared by all threads; @param owner default: this thread */
  constructor(memory: SharedArrayBuffer, owner: number = threadId + 1) {
    this.#words = new Int32Array(memory)
    this.#self = owner
  }

  /** Takes the lock when it is free and no other thread is due. */
  tryAcquire(): boolean {
    return !this.#isYielding() && this.#take(0)
  }

  /**
   * Waits for the lock.
   * @param cancelled asked at least every 50 ms; true ends the wait
   * @returns false when cancelled
   */
  async acquire(cancelled: () => boolean): Promise<boolean> {
    if (this.#isYielding()) {
      // Resolves at once when the word is another's already, else with the other's release or the time.
      await this.#changeOf(0, YIELD_MS)
      this.#yieldUntilMs = 0
    }
    while (!cancelled()) {
      const owner = load(this.#words, OWNER)
      if (owner === 0 || this.#isStale()) {
        if (this.#take(owner)) return true
        continue
      }
      // An owner that releases before it sees this only fails to yield once.
      store(this.#words, WANTED, 1)
      await this.#changeOf(owner, LOOK_MS)
    }
    return false
  }

  /** Says that the owner lives; due every LEASE_MS while the lock is held across an await. */
  renew(): void {
    if (load(this.#words, OWNER) === this.#self) store(this.#words, LEASE, nowMs())
  }

  /** Gives the lock to the next. Does nothing when it was taken away. */
  release(): void {
    this.#yieldUntilMs = exchange(this.#words, WANTED, 0) === 1 ? performance.now() + YIELD_MS : 0
    forgetOwner(this.#words, this.#self)
  }

  #take(expected: number): boolean {
    if (load(this.#words, OWNER) !== expected) return false
    // Before the swap: a new owner with the old owner's lease would lose the lock to the next waiter at once.
    store(this.#words, LEASE, nowMs())
    if (compareExchange(this.#words, OWNER, expected, this.#self) !== expected) return false
    // The flag may be left of this thread's own waiting, and it would yield to nobody. Other waiters set it again as they wake.
    store(this.#words, WANTED, 0)
    return true
  }

  #isYielding(): boolean {
    return this.#yieldUntilMs !== 0 && performance.now() < this.#yieldUntilMs
  }

  #isStale(): boolean {
    return ((nowMs() - load(this.#words, LEASE)) | 0) > LEASE_MS
  }

  async #changeOf(owner: number, timeoutMs: number): Promise<void> {
    const wait = waitAsync(this.#words, OWNER, owner, timeoutMs)
    if (wait.async) await wait.value
  }
}

function forgetOwner(words: Int32Array, owner: number): void {
  // Pairs with the compare-and-swap in #take. The data that the lock guards lies in SQLite, so no plain writes are published.
  if (compareExchange(words, OWNER, owner, 0) === owner) notify(words, OWNER)
}

/**
 * Frees the lock at once when the given thread had it. Called when a thread dies; without it the others would wait LEASE_MS.
 * @param deadThreadId `threadId` of `node:worker_threads`
 */
export function releaseLockOfThread(memory: SharedArrayBuffer, deadThreadId: number): void {
  forgetOwner(new Int32Array(memory), deadThreadId + 1)
}

// hrtime has one origin for all threads of a process; `performance.now()` has one for each.
function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n) | 0
}
