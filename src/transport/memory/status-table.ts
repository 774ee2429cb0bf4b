/** Tools that a process has at most. */
export const STATUS_MAX = 64

export const STATUS_OK = 0
export const STATUS_FAIL = 1
export const STATUS_DEAD = 2
/** `DEAD` too, but the tool has answered as it should: the failed call is its caller's fault. Greater than `STATUS_DEAD`, and nothing else is. */
export const STATUS_REFUSED = 3

export function createStatusTable(): SharedArrayBuffer {
  return new SharedArrayBuffer(STATUS_MAX * 4)
}

/**
 * One word per tool: its health, for all threads. Each word stands alone; the message belongs to the primary's registry.
 * Reads in the tool call's hot path are plain: a change seen a call later does no harm.
 */
export class StatusTable {
  readonly #words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  /** Plain read: may be stale by a moment. */
  peek(toolIndex: number): number {
    return this.#words[toolIndex]!
  }

  get(toolIndex: number): number {
    return Atomics.load(this.#words, toolIndex)
  }

  /** @returns the status before */
  set(toolIndex: number, status: number): number {
    return Atomics.exchange(this.#words, toolIndex, status)
  }
}
