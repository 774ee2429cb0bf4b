import type { DeadLetter, LaneInfo, RequestRecord, RequestSummary } from '#heddle'
import type { WorkFigures } from './frames.ts'
import { MinuteWindow, SECONDS, secondOf } from './minute-window.ts'

/** The requests of the last minute, second by second, and what else has failed meanwhile. */
export class WorkWindows {
  readonly #requests = new MinuteWindow()
  /** Deliveries that were given up, per second. */
  readonly #givenUp: number[] = new Array(SECONDS).fill(0)
  #at = 0

  /** Runs when a request has ended. @param isStream it was open for as long as its client wanted: that is no latency */
  add({ status, duration_ms }: Pick<RequestRecord, 'status' | 'duration_ms'>, isStream: boolean): void {
    if (!isStream) this.#requests.add(this.#at, duration_ms, outcomeOf(status))
  }

  addGivenUp(): void {
    this.#givenUp[this.#at]!++
  }

  /** Adds what ended before the first page was opened, each in its second of the last minute. */
  addPast(requests: readonly RequestSummary[], letters: readonly DeadLetter[], nowMs: number): void {
    for (const { kind, at_ms: atMs, duration_ms: ms, status } of requests) {
      if (kind !== 'request' || ms === null || status === null || atMs + ms > nowMs) continue
      const at = secondOf(this.#at, atMs + ms, nowMs)
      if (at !== null) this.#requests.add(at, ms, outcomeOf(status))
    }
    for (const { timestamp } of letters) {
      const at = Date.parse(timestamp) > nowMs ? null : secondOf(this.#at, Date.parse(timestamp), nowMs)
      if (at !== null) this.#givenUp[at]!++
    }
  }

  /** Ends the current second. */
  turn(lanes: readonly LaneInfo[], nowMs: number): WorkFigures {
    const { minute } = this.#requests
    const second = this.#requests.second(this.#at)
    const deaths = (sinceMs: number): number =>
      lanes.reduce((sum, lane) => sum + lane.deaths.filter(({ at }) => Date.parse(at) > sinceMs).length, 0)
    const figures: WorkFigures = {
      requests: second?.calls ?? 0,
      failed: (second?.errors ?? 0) + this.#givenUp[this.#at]! + deaths(nowMs - 1000),
      p50_ms: second?.percentile(0.5) ?? null,
      p95_ms: second?.percentile(0.95) ?? null,
      minute_requests: minute.calls,
      minute_failed_requests: minute.errors,
      minute_failed_deliveries: this.#givenUp.reduce((sum, count) => sum + count, 0),
      minute_deaths: deaths(nowMs - SECONDS * 1000),
      minute_p50_ms: minute.percentile(0.5),
      minute_p95_ms: minute.percentile(0.95),
      minute_p99_ms: minute.percentile(0.99),
    }
    this.#at = (this.#at + 1) % SECONDS
    this.#requests.clear(this.#at)
    this.#givenUp[this.#at] = 0
    return figures
  }
}

const outcomeOf = (status: number) => (status >= 500 ? 'failed' : 'succeeded')
