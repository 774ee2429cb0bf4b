// What the generator is told, and what it has measured.
import type { Target } from './client.ts'
import type { LatencySummary } from './tally.ts'

/** Closed loop: as many users as connections, each of which waits for its answer. Parent to child. */
export interface LoadPlan extends Target {
  /** Whole HTTP/1.1 requests. Each connection sends them one after another, from the start again at the end. */
  requests: string[]
  /** Keep-alive sockets, one request in flight on each. */
  connections: number
  /** Milliseconds of the same load before anything is counted. */
  warmupMs: number
  /** Milliseconds that are counted. */
  measureMs: number
  /** The server's process: its CPU time is read at both ends of the counted window. */
  observedPid?: number
}

/** The results of the counted window. Child to parent. */
export interface LoadResult {
  elapsedMs: number
  /** Complete answers with a status of 200 to 299. Nothing else is in the rates below. */
  ok: number
  /** The same, counted from the first request on. */
  okWithWarmup: number
  /** Complete answers with another status. */
  non2xx: number
  /** Connections refused, reset or closed before the answer was complete, and answers that are not HTTP. */
  errors: number
  okPerSec: number
  latencyMs: LatencySummary
  /** CPU of the observed process, its threads and what it has started, per good answer, microseconds; null when none was named. */
  serverCpuUsPerRequest: number | null
  /** CPU of the main thread of the observed process alone. */
  serverMainCpuUsPerRequest: number | null
  /** Cores that neither the observed process nor the generator used, but something else on the machine: above a few tenths, measure again. */
  otherCores: number | null
  /** The generator's own CPU per good answer, microseconds. */
  loadCpuUsPerRequest: number
}

/** What the generator answers to a plan. */
export type LoadReply = LoadResult | RateResult | { error: string }

/** Requests that arrive at a fixed rate, whether they are answered or not. */
export interface RateStream {
  name: string
  /** Whole HTTP/1.1 requests, sent in turn. */
  requests: string[]
  perSec: number
  /** Keep-alive connections, each with one request in flight. When all are in use the next request waits, and that time counts. */
  connections: number
}

/** Open loop: users do not wait for each other. Parent to child. */
export interface RatePlan extends Target {
  streams: RateStream[]
  /** Closed loop beside the streams, from the start of the counted window on: each sends its next request when the last is answered. */
  callers?: { requests: string[]; connections: number }
  /** Milliseconds of the streams before anything is counted. */
  warmupMs: number
  /** Length of the counted window, milliseconds. The requests that are due in it are counted. */
  measureMs: number
  /** Milliseconds for which it waits afterwards for the answers to requests that were sent. */
  drainMs: number
  /** The server's process, whose resident memory is sampled during the window. */
  observedPid?: number
}

/** The outcomes of the requests of one stream that were due in the window. Each request is counted in exactly one of the first five. */
export interface StreamResult {
  name: string
  /** Answered with 200 to 299. */
  ok: number
  /** Answered with another status: how many of each. */
  statuses: Record<string, number>
  /** The connection was lost before the answer was complete, or the answer was not HTTP. */
  lost: number
  /** Sent, but not answered when the drain ended. */
  unanswered: number
  /** Not sent within the window: no connection was free. */
  unsent: number
  /** All of the above: the rate times the window. */
  offered: number
  /** Good answers that arrived within the window, whenever their request was due. */
  okPerSec: number
  /** 503 without `retry-after`. */
  withoutRetryAfter: number
  /** Good answers, from the moment the request was due. */
  okMs: LatencySummary
  /** All requests, from the moment they were due to their outcome; without an answer, to the end of the drain. */
  allMs: LatencySummary
  /** 503, from the moment the request was due. */
  refusedMs: LatencySummary
  /** 503, from the moment the request was sent. */
  refusedSinceSentMs: LatencySummary
  /** How late requests were sent: the generator's own delay, and the wait for a free connection. */
  sendDelayMs: LatencySummary
  /** The first requests that were slow: when they were due in the window, how long they took, and the status (0: lost). */
  slow: { dueMs: number; tookMs: number; status: number }[]
}

/** Child to parent. */
export interface RateResult {
  streams: StreamResult[]
  /** What the callers saw from the start of the window to the end of the drain. */
  callers: { ok: number; non2xx: number; errors: number }
  /** Samples of the resident memory of the observed process in the window, bytes, evenly spaced; empty when no process was named. */
  residentBytes: number[]
  /** CPU of the generator in the window, in cores. Near 1 the figures include its own delays. */
  loadCores: number
  /** Cores that neither the observed process nor the generator used, but something else on the machine; null when no process was named. */
  otherCores: number | null
  /** Share of the window, 0 to 1, for which the generator was ready and had no core: its figures are late by that. Null where the kernel does not tell. */
  loadWaitShare: number | null
  /** The same of the main thread of the observed process; null also when none was named. */
  serverWaitShare: number | null
}
