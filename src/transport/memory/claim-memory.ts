// Threads of this process that have ended, for requests that find their claims of keys.
import { randomBytes } from 'node:crypto'

// Taken before plugins can replace them.
const { compareExchange, load, store } = Atomics

/** Threads that are remembered after their end. */
const GONE = 256

/**
 * Tells whether the holder of a claim of an idempotency key is alive.
 *
 * Memory:
 *   word 0      COUNT   Int32: threads that are gone. The primary alone adds to it.
 *   words 2–3   PROCESS BigInt64: a number of this process that no other has; the thread that first asks for it sets it
 *   words 4…    GONE    Int32[256]: `threadId` of those that went last, a ring. Each is written before COUNT, which publishes it.
 */
const COUNT = 0
const PROCESS = 1
const RING = 4

export const CLAIM_MEMORY_BYTES = (RING + GONE) * 4

export class ClaimMemory {
  readonly #words: Int32Array
  readonly #longs: BigInt64Array

  /** @param memory CLAIM_MEMORY_BYTES, shared by all threads */
  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
    this.#longs = new BigInt64Array(memory, 0, RING / 2)
  }

  /** Names this process among all that have ever used the database, 16 hexadecimal digits. */
  get process(): string {
    const known = load(this.#longs, PROCESS)
    if (known !== 0n) return nameOf(known)
    const own = randomBytes(8).readBigInt64LE() | 1n
    const before = compareExchange(this.#longs, PROCESS, 0n, own)
    return nameOf(before === 0n ? own : before)
  }

  /** The primary has seen the end of a thread. @param threadId 0 when it had not begun: that is the primary's own */
  threadGone(threadId: number): void {
    if (threadId === 0) return
    const count = load(this.#words, COUNT)
    store(this.#words, RING + (count % GONE), threadId)
    store(this.#words, COUNT, count + 1)
  }

  /** False for a thread that went so long ago that it is forgotten. */
  isGone(threadId: number): boolean {
    const count = Math.min(GONE, load(this.#words, COUNT))
    for (let n = 0; n < count; n++) if (load(this.#words, RING + n) === threadId) return true
    return false
  }
}

const nameOf = (process: bigint): string => BigInt.asUintN(64, process).toString(16).padStart(16, '0')
