import type { RateResult, StreamResult } from '../../../bench/load/plan.ts'

export const NO_LATENCIES = { count: 0, p50: 0, p99: 0, p999: 0, max: 0 }

/** A stream of which all went well, but for the changes. */
export function streamOf(changes: Partial<StreamResult>): StreamResult {
  return {
    name: 's',
    ok: 100,
    statuses: {},
    lost: 0,
    unanswered: 0,
    unsent: 0,
    offered: 100,
    okPerSec: 100,
    withoutRetryAfter: 0,
    okMs: NO_LATENCIES,
    allMs: NO_LATENCIES,
    refusedMs: NO_LATENCIES,
    refusedSinceSentMs: NO_LATENCIES,
    sendDelayMs: NO_LATENCIES,
    slow: [],
    ...changes,
  }
}

export function rateResultOf(changes: Partial<RateResult>): RateResult {
  return {
    streams: [],
    callers: { ok: 0, non2xx: 0, errors: 0 },
    residentBytes: [1e8, 1e8],
    loadCores: 0.1,
    otherCores: 0,
    loadWaitShare: 0.01,
    serverWaitShare: 0.02,
    ...changes,
  }
}
