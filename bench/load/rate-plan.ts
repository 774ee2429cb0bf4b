import type { LatencySummary } from './latency.ts'

/** Requests that arrive at a fixed rate, whatever becomes of the answers. */
export interface RateStream {
  name: string
  /** Whole HTTP/1.1 requests, sent in turn. */
  requests: string[]
  perSec: number
  /** Keep-alive sockets, one request in flight on each. When all are taken the next request waits, and its time runs. */
  connections: number
}

/** Open loop: users do not wait for one another. Parent to child. */
export interface RatePlan {
  host: string
  port: number
  streams: RateStream[]
  /** Closed loop beside the streams, from the start of the counted window on: each sends its next request when the last is answered. */
  callers?: { requests: string[]; connections: number }
  /** Milliseconds of the streams before anything is counted. */
  warmupMs: number
  /** The requests that are due in these milliseconds are counted. */
  measureMs: number
  /** How long the answers to those that were sent are waited for afterwards. */
  drainMs: number
  /** The server's process: its resident memory is looked at during the window. */
  observedPid?: number
}

/** What became of the requests of one stream that were due in the window. Each is in exactly one of the first five. */
export interface StreamResult {
  name: string
  /** Answered with 200 to 299. */
  ok: number
  /** Answered with another status: how many of each. */
  statuses: Record<string, number>
  /** Their connection was lost before the answer was complete, or the answer was not HTTP. */
  lost: number
  /** Sent, and without an answer when the drain ended. */
  unanswered: number
  /** Not sent within the window: no connection was free. */
  unsent: number
  /** All of the above: the rate times the window. */
  offered: number
  /** Good answers that came within the window, whenever their request was due. */
  okPerSec: number
  /** 503 without `retry-after`. */
  withoutRetryAfter: number
  /** Good answers, from the moment the request was due. */
  okMs: LatencySummary
  /** All requests, from the moment they were due to whatever became of them; those without an answer to the end of the drain. */
  allMs: LatencySummary
  /** 503, from the moment the request was due. */
  refusedMs: LatencySummary
  /** 503, from the moment the request was sent. */
  refusedSinceSentMs: LatencySummary
  /** How late requests were sent: the generator's own part, and the wait for a free connection. */
  sendDelayMs: LatencySummary
  /** The first requests that were slow: when they were due in the window, how long they took, and the status (0: lost). */
  slow: { dueMs: number; tookMs: number; status: number }[]
}

/** Child to parent. */
export interface RateResult {
  streams: StreamResult[]
  /** What the callers saw from the start of the window to the end of the drain. */
  callers: { ok: number; non2xx: number; errors: number }
  /** Resident memory of the observed process in the window, bytes, evenly spaced; empty when none was named. */
  residentBytes: number[]
  /** CPU of the generator in the window, in cores: near 1, its own delays are in the figures. */
  loadCores: number
  /** Cores that neither the observed process nor the generator used, but something else on the machine; null when no process was named. */
  otherCores: number | null
}
