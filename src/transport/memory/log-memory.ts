/**
 * What all threads know of the durable event log.
 *
 * Memory:
 *   bytes 0–7    NEXT     BigInt64: the position of the next event. Every thread that stores events takes from it. A counter, because
 *                         SQLite uses the positions of deleted rows again.
 *   bytes 8–15   STORED   BigInt64: events that are stored and not forgotten, as the primary counts them
 *   bytes 16–19  IS_OPEN  Int32: 1 from when the tables are there and NEXT is set. The primary alone sets it.
 */
const NEXT = 0
const STORED = 1
const IS_OPEN = 4

export const LOG_MEMORY_BYTES = 24

export class LogMemory {
  readonly #longs: BigInt64Array
  readonly #words: Int32Array

  /** @param memory LOG_MEMORY_BYTES, shared by all threads */
  constructor(memory: SharedArrayBuffer) {
    this.#longs = new BigInt64Array(memory)
    this.#words = new Int32Array(memory)
  }

  get isOpen(): boolean {
    return Atomics.load(this.#words, IS_OPEN) === 1
  }

  /** @param next the first position that is free */
  open(next: number): void {
    Atomics.store(this.#longs, NEXT, BigInt(next))
    Atomics.store(this.#words, IS_OPEN, 1)
  }

  /** @returns the first of so many positions, which nobody else gets */
  take(count: number): number {
    return Number(Atomics.add(this.#longs, NEXT, BigInt(count)))
  }

  /** The first position that nobody has taken. */
  get next(): number {
    return Number(Atomics.load(this.#longs, NEXT))
  }

  get stored(): number {
    return Number(Atomics.load(this.#longs, STORED))
  }

  set stored(events: number) {
    Atomics.store(this.#longs, STORED, BigInt(events))
  }
}
