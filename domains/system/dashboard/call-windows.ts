import type { MetricRecord } from '#heddle'
import type { CallFigures } from './frames.ts'
import { MinuteWindow, type Outcome, SECONDS, secondOf } from './minute-window.ts'

/** Methods that have a window of their own. Further methods share one. */
const METHODS_MAX = 400
const OTHER = 'other calls'

/** Latencies of all tool calls over the last minute, second by second. 28 KiB per method. */
export class CallWindows {
  /** By tool, then by method, so that the hot path concatenates no text. */
  readonly #tools = new Map<string, Map<string, MinuteWindow>>()
  readonly #windows = new Map<string, MinuteWindow>()
  #at = 0

  /** Runs within every tool call of the process. */
  add(record: MetricRecord): void {
    this.#windowOf(record.tool, record.method).add(this.#at, record.duration_ms, outcomeOf(record))
  }

  /** Adds calls that ended before the first page was opened, each in its second of the last minute. */
  addPast(records: readonly MetricRecord[], nowMs: number): void {
    for (const record of records) {
      const { tool, method, duration_ms, timestamp } = record
      const at = secondOf(this.#at, Date.parse(timestamp), nowMs)
      if (at !== null) this.#windowOf(tool, method).add(at, duration_ms, outcomeOf(record))
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
          second_p95_ms: second?.percentile(0.95) ?? null,
          minute_calls: minute.calls,
          minute_errors: minute.errors,
          minute_refused: minute.refused,
          p50_ms: minute.percentile(0.5)!,
          p95_ms: minute.percentile(0.95)!,
          p99_ms: minute.percentile(0.99)!,
        })
      }
      window.clear(next)
    }
    this.#at = next
    return figures
  }

  #windowOf(tool: string, method: string): MinuteWindow {
    let methods = this.#tools.get(tool)
    if (methods === undefined) {
      methods = new Map()
      this.#tools.set(tool, methods)
    }
    let window = methods.get(method)
    if (window === undefined) {
      const call = this.#windows.size < METHODS_MAX ? `${tool}.${method}` : OTHER
      window = this.#windows.get(call) ?? new MinuteWindow()
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
