// Counts answers and latencies.

import { createHistogram } from 'node:perf_hooks'
import type { ResponseReader } from './client.ts'
import type { StreamResult } from './plan.ts'

/** An hour. */
const LONGEST_US = 3_600_000_000

/** Milliseconds; all 0 when there are none. */
export interface LatencySummary {
  count: number
  p50: number
  p99: number
  p999: number
  max: number
}

/** Counts latencies to three digits. */
export class LatencyHistogram {
  readonly #us = createHistogram({ lowest: 1, highest: LONGEST_US, figures: 3 })

  record(latencyMs: number): void {
    this.#us.record(Math.max(1, Math.round(latencyMs * 1000)))
  }

  clear(): void {
    this.#us.reset()
  }

  /** That of the given share (0 to 1) of all latencies; 0 when there are none. */
  percentileMs(share: number): number {
    return this.#us.count === 0 ? 0 : milliseconds(this.#us.percentile(share * 100))
  }

  get maxMs(): number {
    return this.#us.count === 0 ? 0 : milliseconds(this.#us.max)
  }

  summary(): LatencySummary {
    return {
      count: this.#us.count,
      p50: this.percentileMs(0.5),
      p99: this.percentileMs(0.99),
      p999: this.percentileMs(0.999),
      max: this.maxMs,
    }
  }
}

const milliseconds = (us: number): number => Number((us / 1000).toFixed(2))

/** A request that took longer is listed separately. Milliseconds. */
const SLOW_MS = 10
const SLOW_LISTED = 500

/** Counts the outcomes of the requests of one stream. Requests that were due outside the window count only in the rate of answers. */
export class Tally {
  readonly #name: string
  readonly #fromMs: number
  readonly #untilMs: number
  readonly #okMs = new LatencyHistogram()
  readonly #allMs = new LatencyHistogram()
  readonly #refusedMs = new LatencyHistogram()
  readonly #refusedSinceSentMs = new LatencyHistogram()
  readonly #sendDelayMs = new LatencyHistogram()
  readonly #statuses = new Map<number, number>()
  readonly #slow: StreamResult['slow'] = []
  #okInTime = 0
  readonly #failed = { lost: 0, unanswered: 0, unsent: 0 }
  #ok = 0
  #withoutRetryAfter = 0

  /** @param fromMs beginning of the window, by the clock of `performance.now`; @param untilMs its end */
  constructor(name: string, fromMs: number, untilMs: number) {
    this.#name = name
    this.#fromMs = fromMs
    this.#untilMs = untilMs
  }

  sent(dueMs: number, nowMs: number): void {
    if (this.#counts(dueMs)) this.#sendDelayMs.record(nowMs - dueMs)
  }

  answered(dueMs: number, sentMs: number, nowMs: number, { status, saysRetryAfter }: ResponseReader): void {
    const isOk = status >= 200 && status < 300
    if (isOk && this.#counts(nowMs)) this.#okInTime++
    if (!this.#counts(dueMs)) return
    this.#ended(dueMs, nowMs, status)
    if (isOk) {
      this.#ok++
      this.#okMs.record(nowMs - dueMs)
      return
    }
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1)
    if (status !== 503) return
    if (!saysRetryAfter) this.#withoutRetryAfter++
    this.#refusedMs.record(nowMs - dueMs)
    this.#refusedSinceSentMs.record(nowMs - sentMs)
  }

  /** There is no answer to it. */
  failed(how: 'lost' | 'unanswered' | 'unsent', dueMs: number, nowMs: number): void {
    if (!this.#counts(dueMs)) return
    this.#failed[how]++
    this.#ended(dueMs, nowMs, 0)
  }

  result(): StreamResult {
    const outcomes = [this.#ok, ...this.#statuses.values(), ...Object.values(this.#failed)]
    return {
      name: this.#name,
      ok: this.#ok,
      statuses: Object.fromEntries(this.#statuses),
      ...this.#failed,
      offered: outcomes.reduce((sum, count) => sum + count, 0),
      okPerSec: (this.#okInTime / (this.#untilMs - this.#fromMs)) * 1000,
      withoutRetryAfter: this.#withoutRetryAfter,
      okMs: this.#okMs.summary(),
      allMs: this.#allMs.summary(),
      refusedMs: this.#refusedMs.summary(),
      refusedSinceSentMs: this.#refusedSinceSentMs.summary(),
      sendDelayMs: this.#sendDelayMs.summary(),
      slow: this.#slow,
    }
  }

  #counts(atMs: number): boolean {
    return atMs >= this.#fromMs && atMs < this.#untilMs
  }

  #ended(dueMs: number, nowMs: number, status: number): void {
    const tookMs = nowMs - dueMs
    this.#allMs.record(tookMs)
    if (tookMs > SLOW_MS && this.#slow.length < SLOW_LISTED) {
      this.#slow.push({ dueMs: Math.round(dueMs - this.#fromMs), tookMs: Math.round(tookMs), status })
    }
  }
}
