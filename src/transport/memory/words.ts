// Shared memory of a word or two: statuses, a generation, a counter, a fault, a pause.

/** 32-bit words that all threads share. Each subclass says how many, and who writes them. */
export class SharedWords {
  protected readonly words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.words = new Int32Array(memory)
  }
}

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
export class StatusTable extends SharedWords {
  /** Plain read: may be stale by a moment. */
  peek(toolIndex: number): number {
    return this.words[toolIndex]!
  }

  get(toolIndex: number): number {
    return load(this.words, toolIndex)
  }

  /** @returns the status before */
  set(toolIndex: number, status: number): number {
    return exchange(this.words, toolIndex, status)
  }
}

/**
 * How far a list has grown that the primary keeps: other threads see here that their copy is behind, without asking.
 *
 * Memory (Int32 words):
 *   0  GENERATION  0 until the list is there. The primary alone sets it, after the list has changed; it only grows.
 */
const GENERATION = 0

export const GENERATION_BYTES = Int32Array.BYTES_PER_ELEMENT

export class Generation extends SharedWords {
  get current(): number {
    return load(this.words, GENERATION)
  }

  set current(generation: number) {
    store(this.words, GENERATION, generation)
  }
}

/**
 * How often something has happened in all threads.
 *
 * Memory (Int32 words):
 *   0  COUNT  Any thread adds to it.
 */
const COUNT = 0

export const COUNTER_BYTES = Int32Array.BYTES_PER_ELEMENT

export class Counter extends SharedWords {
  get value(): number {
    return load(this.words, COUNT)
  }

  add(): void {
    add(this.words, COUNT, 1)
  }
}

/**
 * Why no thread can write to the embedded database at present.
 *
 * Memory (Int32 words):
 *   0  FAULT   0 while writes succeed. Any thread sets it when a write of its own fails; the primary alone clears it, after a write of
 *              its own succeeded. A lost race costs one second: the primary looks again.
 */
const FAULT = 0

/** `reserve`: the disk is full, and the room that was kept for deletes is given away. */
export const WRITE_FAULTS = ['none', 'full', 'reserve', 'failed', 'locked', 'replaced'] as const
export type WriteFaultKind = (typeof WRITE_FAULTS)[number]

export class WriteFault extends SharedWords {
  get kind(): WriteFaultKind {
    return WRITE_FAULTS[load(this.words, FAULT)]!
  }

  set kind(kind: WriteFaultKind) {
    store(this.words, FAULT, WRITE_FAULTS.indexOf(kind))
  }
}

/** Never notified. */
const own = new Int32Array(new SharedArrayBuffer(4))

/** Blocks this thread: at the end of the process, when no event loop runs any more. */
export function pauseThread(durationMs: number): void {
  wait(own, 0, 0, durationMs)
}

// Taken before plugins can replace them.
const { add, exchange, load, store, wait } = Atomics
