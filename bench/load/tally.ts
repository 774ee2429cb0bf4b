import { LatencyHistogram } from './latency.ts'
import type { StreamResult } from './rate-plan.ts'
import type { ResponseReader } from './response-reader.ts'

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
  #ok = 0
  #lost = 0
  #unanswered = 0
  #unsent = 0
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

  lost(dueMs: number, nowMs: number): void {
    if (!this.#counts(dueMs)) return
    this.#lost++
    this.#ended(dueMs, nowMs, 0)
  }

  unanswered(dueMs: number, nowMs: number): void {
    if (!this.#counts(dueMs)) return
    this.#unanswered++
    this.#ended(dueMs, nowMs, 0)
  }

  unsent(dueMs: number, nowMs: number): void {
    if (!this.#counts(dueMs)) return
    this.#unsent++
    this.#ended(dueMs, nowMs, 0)
  }

  result(): StreamResult {
    const otherStatuses = [...this.#statuses.values()].reduce((sum, count) => sum + count, 0)
    return {
      name: this.#name,
      ok: this.#ok,
      statuses: Object.fromEntries(this.#statuses),
      lost: this.#lost,
      unanswered: this.#unanswered,
      unsent: this.#unsent,
      offered: this.#ok + otherStatuses + this.#lost + this.#unanswered + this.#unsent,
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
