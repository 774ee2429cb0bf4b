import type { DeadLetter, LaneInfo, RequestRecord, RequestSummary } from '#heddle'
import type { WorkFigures } from './frames.ts'
import { MinuteWindow, SECONDS, secondOf } from './minute-window.ts'

/** What has failed beside requests. */
type OtherFailure = 'delivery' | 'job'

/** What is known of the minute before the first page was opened. */
export interface Past {
  /** All requests since `requestsSinceMs`; none where nobody knows. */
  readonly requests: readonly RequestSummary[]
  readonly requestsSinceMs: number
  /** Requests and runs of jobs that failed, all since `failedSinceMs`. */
  readonly failed: readonly RequestSummary[]
  readonly failedSinceMs: number
  readonly letters: readonly DeadLetter[]
}

/** The requests of the last minute, second by second, and what has failed meanwhile. It says of how many seconds that is known. */
export class WorkWindows {
  readonly #requests = new MinuteWindow()
  readonly #failed = { request: ring(), delivery: ring(), job: ring() }
  #requestsSinceMs: number
  #failedSinceMs: number
  #at = 0

  /** @param nowMs nothing is known of what was before */
  constructor(nowMs: number) {
    this.#requestsSinceMs = nowMs
    this.#failedSinceMs = nowMs
  }

  /** Runs when a request has ended. @param isStream it was open for as long as its client wanted: that is no latency */
  add({ status, duration_ms }: Pick<RequestRecord, 'status' | 'duration_ms'>, isStream: boolean): void {
    if (isStream) return
    this.#requests.add(this.#at, duration_ms, 'succeeded')
    if (status >= 500) this.#failed.request[this.#at]!++
  }

  addFailed(what: OtherFailure, times = 1): void {
    this.#failed[what][this.#at]! += times
  }

  /** Adds what ended before the first page was opened, each in its second of the last minute. */
  addPast({ requests, requestsSinceMs, failed, failedSinceMs, letters }: Past, nowMs: number): void {
    this.#requestsSinceMs = Math.min(this.#requestsSinceMs, requestsSinceMs)
    this.#failedSinceMs = Math.min(this.#failedSinceMs, failedSinceMs)
    const secondAt = (endedMs: number) => (endedMs > nowMs ? null : secondOf(this.#at, endedMs, nowMs))
    for (const { kind, at_ms: atMs, duration_ms: ms, status } of requests) {
      const at = kind !== 'request' || ms === null || status === null ? null : secondAt(atMs + ms)
      if (at !== null) this.#requests.add(at, ms!, 'succeeded')
    }
    for (const { kind, at_ms: atMs, duration_ms: ms, status } of failed) {
      // A request below 500 has caused something that failed: that counts by itself.
      const isFailure = kind === 'job' || (status !== null && status >= 500)
      const at = isFailure ? secondAt(atMs + (ms ?? 0)) : null
      if (at !== null) this.#failed[kind][at]!++
    }
    for (const { timestamp } of letters) {
      const at = secondAt(Date.parse(timestamp))
      if (at !== null) this.#failed.delivery[at]!++
    }
  }

  /** Ends the current second. */
  turn(lanes: readonly LaneInfo[], nowMs: number): WorkFigures {
    const { minute } = this.#requests
    const second = this.#requests.second(this.#at)
    const deaths = (sinceMs: number): number =>
      lanes.reduce((sum, lane) => sum + lane.deaths.filter(({ at }) => Date.parse(at) > sinceMs).length, 0)
    const { request, delivery, job } = this.#failed
    const figures: WorkFigures = {
      requests: second?.calls ?? 0,
      failed: request[this.#at]! + delivery[this.#at]! + job[this.#at]! + deaths(nowMs - 1000),
      p50_ms: second?.percentile(0.5) ?? null,
      p95_ms: second?.percentile(0.95) ?? null,
      minute_seconds: secondsSince(this.#requestsSinceMs, nowMs),
      minute_requests: minute.calls,
      failed_seconds: secondsSince(this.#failedSinceMs, nowMs),
      minute_failed_requests: sum(request),
      minute_failed_deliveries: sum(delivery),
      minute_failed_jobs: sum(job),
      minute_deaths: deaths(nowMs - SECONDS * 1000),
      minute_p50_ms: minute.percentile(0.5),
      minute_p95_ms: minute.percentile(0.95),
      minute_p99_ms: minute.percentile(0.99),
    }
    this.#at = (this.#at + 1) % SECONDS
    this.#requests.clear(this.#at)
    for (const counts of Object.values(this.#failed)) counts[this.#at] = 0
    return figures
  }
}

const ring = (): number[] => new Array(SECONDS).fill(0)
const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0)

/** Of the last minute, at least one. */
export const secondsSince = (sinceMs: number, nowMs: number): number =>
  Math.min(SECONDS, Math.max(1, Math.round((nowMs - sinceMs) / 1000)))
