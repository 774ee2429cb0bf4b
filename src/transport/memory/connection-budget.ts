// How many connections to a server all threads of the process may have.
import { threadId } from 'node:worker_threads'

// Taken before plugins can replace them.
const { add, compareExchange, load, store, sub } = Atomics

/**
 * Counts the connections of all threads to a server, so that a process keeps to its limit also while old and new lanes run side by side.
 *
 * Memory (Int32 words), a pair for each thread:
 *   2n      OWNER   0 when free, else thread id + 1. Taken by compare-and-swap; freed by the thread that sees the owner end.
 *   2n + 1  COUNT   connections of that thread. Changed by the owner alone, and zeroed before its pair is freed.
 *
 * A thread counts its connection first and reads the sum then, so two threads at once may both be refused, but never both get the last
 * connection. A thread that has none always gets one: without it the thread could do nothing, and the others may keep theirs for long.
 */
const OWNER = 0
const COUNT = 1
const WORDS_PER_THREAD = 2
/** More than there can be lanes, replacements included. */
const THREADS = 520

export const CONNECTION_BUDGET_BYTES = THREADS * WORDS_PER_THREAD * Int32Array.BYTES_PER_ELEMENT

export class ConnectionBudget {
  readonly #words: Int32Array
  readonly #limit: number
  readonly #at: number

  /** @param memory CONNECTION_BUDGET_BYTES, shared by all threads; @param owner default: this thread */
  constructor(memory: SharedArrayBuffer, limit: number, owner: number = threadId + 1) {
    this.#words = new Int32Array(memory)
    this.#limit = limit
    this.#at = claim(this.#words, owner)
  }

  /** Counts one more connection of this thread, if the process may have it. */
  tryTake(): boolean {
    const before = add(this.#words, this.#at + COUNT, 1)
    if (before === 0 || this.#sum() <= this.#limit) return true
    this.give()
    return false
  }

  /** A connection of this thread has ended. */
  give(): void {
    sub(this.#words, this.#at + COUNT, 1)
  }

  #sum(): number {
    let sum = 0
    for (let at = COUNT; at < this.#words.length; at += WORDS_PER_THREAD) sum += load(this.#words, at)
    return sum
  }
}

function claim(words: Int32Array, owner: number): number {
  for (let at = 0; at < words.length; at += WORDS_PER_THREAD) {
    if (compareExchange(words, at + OWNER, 0, owner) === 0) return at
  }
  throw new Error(`more than ${THREADS} threads count connections`)
}

/** Frees the connections of a thread that has ended. @param deadThreadId `threadId` of `node:worker_threads` */
export function giveBackOfThread(memory: SharedArrayBuffer, deadThreadId: number): void {
  const words = new Int32Array(memory)
  for (let at = 0; at < words.length; at += WORDS_PER_THREAD) {
    if (load(words, at + OWNER) !== deadThreadId + 1) continue
    store(words, at + COUNT, 0)
    store(words, at + OWNER, 0)
  }
}
