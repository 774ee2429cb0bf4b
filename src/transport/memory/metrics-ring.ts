/**
 * Metrics ring (any thread writes, any thread reads): one word CURSOR in the first 64 bytes, then slots of 32 bytes:
 *
 *   ┌────────┬────────────────┬───────────────────┬─────────────────┬─────────┐
 *   │ COMMIT │ CALL | OUTCOME │ DURATION (float64)│ ENDED (float64) │ THREAD  │
 *   └────────┴────────────────┴───────────────────┴─────────────────┴─────────┘
 *   word 0     word 1           bytes 8–15          bytes 16–23       word 6
 *
 * CURSOR counts records for ever, modulo 2^32. COMMIT is `record number + 1` once the slot is whole.
 */

// Taken before plugins can replace them.
const { add, load, store } = Atomics
const METRICS_CURSOR_WORD = 0
const METRICS_DATA_BYTE = 64
const METRICS_SLOT_BYTES = 32

/** Slots: enough that a reader every 100 ms loses nothing below 650,000 calls a second. */
export const METRICS_SLOTS = 65_536
const SLOT_MASK = METRICS_SLOTS - 1
const SLOT_WORDS = METRICS_SLOT_BYTES >> 2
const SLOT_DOUBLES = METRICS_SLOT_BYTES >> 3
const CALL_MASK = (1 << 16) - 1
const FAILED_BIT = 1 << 16
const REFUSED_BIT = 1 << 17

/** One tool call as it stands in the ring. */
export interface RawMetric {
  /** Number of the call's name (`db.query`) in the name table. */
  callNumber: number
  failed: boolean
  /** It failed by its caller's fault. */
  refused: boolean
  durationMs: number
  /** Milliseconds since the epoch when the call ended. */
  endedMs: number
  threadNumber: number
}

export function createMetricsRing(): SharedArrayBuffer {
  return new SharedArrayBuffer(METRICS_DATA_BYTE + METRICS_SLOTS * METRICS_SLOT_BYTES)
}

/**
 * Tool calls of all threads. Any thread writes without waiting, any thread reads; the oldest are overwritten.
 * A reader sees a slot only when it is whole: COMMIT names its record before and after the copy.
 */
export class MetricsRing {
  readonly #control: Int32Array
  readonly #words: Int32Array
  readonly #doubles: Float64Array

  constructor(memory: SharedArrayBuffer) {
    this.#control = new Int32Array(memory, 0, METRICS_DATA_BYTE >> 2)
    this.#words = new Int32Array(memory, METRICS_DATA_BYTE)
    this.#doubles = new Float64Array(memory, METRICS_DATA_BYTE)
  }

  /** @param refused it failed by its caller's fault */
  write(
    callNumber: number,
    failed: boolean,
    durationMs: number,
    endedMs: number,
    threadNumber: number,
    refused = false,
  ): void {
    const record = add(this.#control, METRICS_CURSOR_WORD, 1)
    const slot = record & SLOT_MASK
    const word = slot * SLOT_WORDS
    const double = slot * SLOT_DOUBLES
    // Takes the slot from readers before its fields change; pairs with their first load.
    store(this.#words, word, 0)
    this.#words[word + 1] = failed ? callNumber | (refused ? FAILED_BIT | REFUSED_BIT : FAILED_BIT) : callNumber
    this.#doubles[double + 1] = durationMs
    this.#doubles[double + 2] = endedMs
    this.#words[word + 6] = threadNumber
    // Publishes the plain writes above; pairs with the readers' loads.
    store(this.#words, word, commitOf(record))
  }

  /** The number of the next record, modulo 2^32. */
  get cursor(): number {
    return load(this.#control, METRICS_CURSOR_WORD) >>> 0
  }

  /** The first of the records `from` … `to - 1` that a writer is still at; `to` when there is none. */
  firstOpen(from: number, to: number): number {
    let record = from >>> 0
    if ((to - record) >>> 0 > METRICS_SLOTS) record = (to - METRICS_SLOTS) >>> 0
    for (; record !== to >>> 0; record = (record + 1) >>> 0) {
      const commit = load(this.#words, (record & SLOT_MASK) * SLOT_WORDS)
      // 0: a writer has it. Of a round before: a writer has it, and has not begun.
      if (commit === 0 || ((commit - commitOf(record)) | 0) < 0) return record
    }
    return record
  }

  /**
   * Reads records `from` … `to - 1`, in order. One that is overwritten or not yet whole is left out.
   * @returns how many were left out
   */
  read(from: number, to: number, visit: (metric: RawMetric) => void): number {
    let missed = 0
    let record = from >>> 0
    if ((to - record) >>> 0 > METRICS_SLOTS) {
      missed = ((to - record) >>> 0) - METRICS_SLOTS
      record = (to - METRICS_SLOTS) >>> 0
    }
    for (; record !== to >>> 0; record = (record + 1) >>> 0) {
      const slot = record & SLOT_MASK
      const word = slot * SLOT_WORDS
      const commit = commitOf(record)
      if (load(this.#words, word) !== commit) {
        missed++
        continue
      }
      const call = this.#words[word + 1]!
      const durationMs = this.#doubles[slot * SLOT_DOUBLES + 1]!
      const endedMs = this.#doubles[slot * SLOT_DOUBLES + 2]!
      const threadNumber = this.#words[word + 6]!
      // Unchanged since the first load: no writer has taken the slot meanwhile.
      if (load(this.#words, word) !== commit) {
        missed++
        continue
      }
      visit({
        callNumber: call & CALL_MASK,
        failed: (call & FAILED_BIT) !== 0,
        refused: (call & REFUSED_BIT) !== 0,
        durationMs,
        endedMs,
        threadNumber,
      })
    }
    return missed
  }
}

/** Looks at one record that a writer is still at, until its thread is taken for dead: on a busy machine a thread may wait for a core for several of them. */
const HELD_UP_LOOKS = 10

/** Reads what has come since the last look, in order, and waits for writers that are at a record. */
export class MetricsFeed {
  readonly #ring: MetricsRing
  #from: number
  #looksAtOpen = 0

  constructor(ring: MetricsRing) {
    this.#ring = ring
    this.#from = ring.cursor
  }

  look(visit: (metric: RawMetric) => void): void {
    const { cursor } = this.#ring
    let to = this.#ring.firstOpen(this.#from, cursor)
    this.#looksAtOpen = to === this.#from && to !== cursor ? this.#looksAtOpen + 1 : 0
    if (this.#looksAtOpen === HELD_UP_LOOKS) {
      to = cursor
      this.#looksAtOpen = 0
    }
    this.#ring.read(this.#from, to, visit)
    this.#from = to
  }
}

/** Never 0: that is a slot that is written to, or never was. The last number before 2^32 stands in another slot than the first after it. */
function commitOf(record: number): number {
  return (record + 1) | 0 || 1
}
