import type { RatePlan, RateResult } from './rate-plan.ts'

/** Closed loop: as many users as connections, each of which waits for its answer. Parent to child. */
export interface LoadPlan {
  host: string
  port: number
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
  latencyMs: { p50: number; p99: number; max: number }
  /** CPU of the observed process, its threads and what it has started, per good answer, microseconds; null when none was named. */
  serverCpuUsPerRequest: number | null
  /** CPU of the main thread of the observed process alone. */
  serverMainCpuUsPerRequest: number | null
  /** Cores that neither the observed process nor the generator used, but something else on the machine: above a few tenths, measure again. */
  otherCores: number | null
  /** The generator's own CPU per good answer, microseconds. */
  loadCpuUsPerRequest: number
}

/** Every message between the generator's two ends. */
export type LoadMessage =
  | { kind: 'plan'; plan: LoadPlan }
  | { kind: 'rate-plan'; plan: RatePlan }
  | { kind: 'result'; result: LoadResult | RateResult }
  | { kind: 'failed'; error: string }
