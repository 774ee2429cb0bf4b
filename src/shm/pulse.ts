import { getHeapStatistics } from 'node:v8'

/**
 * Pulse of one lane (written by the lane, read by the primary):
 *
 *   word 0  BEATS        counts up every LANE_BEAT_MS while the lane's loop turns
 *   word 1  LOOP_DELAY   longest delay of that timer in the last second, microseconds
 *   word 2  HEAP_KIB     used JavaScript heap
 */
const PULSE_BEATS_WORD = 0
const PULSE_LOOP_DELAY_US_WORD = 1
const PULSE_HEAP_KIB_WORD = 2
const PULSE_BYTES = 64

/** How often a lane shows that its loop turns, milliseconds. */
export const LANE_BEAT_MS = 20

const BEATS_PER_REPORT = 1000 / LANE_BEAT_MS

export function createPulse(): SharedArrayBuffer {
  return new SharedArrayBuffer(PULSE_BYTES)
}

/** The lane's side: beats while the thread's loop turns. */
export class PulseWriter {
  readonly #words: Int32Array
  #timer: NodeJS.Timeout | undefined
  #lastBeatMs = performance.now()
  #longestDelayMs = 0
  #beats = 0

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  start(): void {
    this.#timer = setInterval(() => this.#beat(), LANE_BEAT_MS)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #beat(): void {
    const nowMs = performance.now()
    this.#longestDelayMs = Math.max(this.#longestDelayMs, nowMs - this.#lastBeatMs - LANE_BEAT_MS)
    this.#lastBeatMs = nowMs
    // Wakes nobody and publishes nothing else: each word stands alone.
    Atomics.add(this.#words, PULSE_BEATS_WORD, 1)
    if (++this.#beats % BEATS_PER_REPORT === 0) {
      Atomics.store(this.#words, PULSE_LOOP_DELAY_US_WORD, Math.round(Math.max(0, this.#longestDelayMs) * 1000))
      Atomics.store(this.#words, PULSE_HEAP_KIB_WORD, Math.round(getHeapStatistics().used_heap_size / 1024))
      this.#longestDelayMs = 0
    }
  }
}

/** The primary's side. */
export class PulseReader {
  readonly #words: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
  }

  get beats(): number {
    return Atomics.load(this.#words, PULSE_BEATS_WORD)
  }

  /** Longest delay of the lane's loop in its last whole second. */
  get loopDelayMs(): number {
    return Atomics.load(this.#words, PULSE_LOOP_DELAY_US_WORD) / 1000
  }

  get heapBytes(): number {
    return Atomics.load(this.#words, PULSE_HEAP_KIB_WORD) * 1024
  }
}
