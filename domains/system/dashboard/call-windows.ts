import type { MetricRecord } from '#heddle'
import type { CallFigures } from './frames.ts'

const SECONDS = 60
/** Buckets grow by a quarter of an octave from 1 µs to 268 s: a percentile is off by 9 % at most. */
const BUCKETS_PER_OCTAVE = 4
const BUCKETS = 28 * BUCKETS_PER_OCTAVE
/** Methods that have a window of their own. Further methods share one. */
const METHODS_MAX = 400
const OTHER = 'other calls'

type Outcome = 'succeeded' | 'failed' | 'refused'

class Slot {
  calls = 0
  errors = 0
  refused = 0
  readonly buckets = new Uint32Array(BUCKETS)

  add(bucket: number, outcome: Outcome): void {
    this.calls++
    if (outcome === 'failed') this.errors++
    else if (outcome === 'refused') this.refused++
    this.buckets[bucket]!++
  }

  clear(): void {
    this.calls = 0
    this.errors = 0
    this.refused = 0
    this.buckets.fill(0)
  }
}

/** The calls of one method: a ring of 60 seconds, and their sum. */
class CallWindow {
  readonly minute = new Slot()
  readonly #seconds: (Slot | undefined)[] = new Array(SECONDS).fill(undefined)

  add(at: number, bucket: number, outcome: Outcome): void {
    this.#seconds[at] ??= new Slot()
    this.#seconds[at].add(bucket, outcome)
    this.minute.add(bucket, outcome)
  }

  second(at: number): Slot | undefined {
    return this.#seconds[at]
  }

  /** Clears a second of the last minute, and takes it out of the sum. */
  clear(at: number): void {
    const slot = this.#seconds[at]
    if (slot === undefined || slot.calls === 0) return
    this.minute.calls -= slot.calls
    this.minute.errors -= slot.errors
    this.minute.refused -= slot.refused
    for (let n = 0; n < BUCKETS; n++) this.minute.buckets[n]! -= slot.buckets[n]!
    slot.clear()
  }
}

/**
 * Latencies of all tool calls over the last minute, second by second. A call only increments the count of a bucket, so its cost does
 * not depend on the number of calls. 28 KiB per method.
 */
export class CallWindows {
  /** By tool, then by method, so that the hot path concatenates no text. */
  readonly #tools = new Map<string, Map<string, CallWindow>>()
  readonly #windows = new Map<string, CallWindow>()
  #at = 0

  /** Runs within every tool call of the process. */
  add(record: MetricRecord): void {
    this.#windowOf(record.tool, record.method).add(this.#at, bucketOf(record.duration_ms), outcomeOf(record))
  }

  /** Adds calls that ended before the first page was opened, each in its second of the last minute. */
  addPast(records: readonly MetricRecord[], nowMs: number): void {
    for (const record of records) {
      const { tool, method, duration_ms, timestamp } = record
      const secondsAgo = Math.max(1, Math.ceil((nowMs - Date.parse(timestamp)) / 1000))
      if (secondsAgo >= SECONDS) continue
      const at = (this.#at - secondsAgo + SECONDS) % SECONDS
      this.#windowOf(tool, method).add(at, bucketOf(duration_ms), outcomeOf(record))
    }
  }

  /** Ends the current second. @returns figures of the methods that were called in the last minute */
  turn(): CallFigures[] {
    const figures: CallFigures[] = []
    const next = (this.#at + 1) % SECONDS
    for (const [call, window] of this.#windows) {
      const { minute } = window
      if (minute.calls > 0) {
        const second = window.second(this.#at)
        figures.push({
          call,
          calls: second?.calls ?? 0,
          errors: second?.errors ?? 0,
          second_p95_ms: second === undefined || second.calls === 0 ? null : percentile(second, 0.95),
          minute_calls: minute.calls,
          minute_errors: minute.errors,
          minute_refused: minute.refused,
          p50_ms: percentile(minute, 0.5),
          p95_ms: percentile(minute, 0.95),
          p99_ms: percentile(minute, 0.99),
        })
      }
      window.clear(next)
    }
    this.#at = next
    return figures
  }

  #windowOf(tool: string, method: string): CallWindow {
    let methods = this.#tools.get(tool)
    if (methods === undefined) {
      methods = new Map()
      this.#tools.set(tool, methods)
    }
    let window = methods.get(method)
    if (window === undefined) {
      const call = this.#windows.size < METHODS_MAX ? `${tool}.${method}` : OTHER
      window = this.#windows.get(call) ?? new CallWindow()
      this.#windows.set(call, window)
      methods.set(method, window)
    }
    return window
  }
}

function outcomeOf({ success, fault }: MetricRecord): Outcome {
  if (success) return 'succeeded'
  return fault === 'caller' ? 'refused' : 'failed'
}

function bucketOf(durationMs: number): number {
  const bucket = Math.floor(Math.log2(durationMs * 1000) * BUCKETS_PER_OCTAVE)
  return bucket > 0 ? Math.min(bucket, BUCKETS - 1) : 0
}

/** The geometric middle of the percentile's bucket, in milliseconds with three significant digits. */
function percentile({ calls, buckets }: Slot, share: number): number {
  let left = Math.ceil(calls * share)
  let bucket = 0
  while (bucket < BUCKETS - 1 && left > buckets[bucket]!) left -= buckets[bucket++]!
  return Number((2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE) / 1000).toPrecision(3))
}
