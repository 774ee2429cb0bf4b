import { setTimeout as sleep } from 'node:timers/promises'
import { Caller } from './closed-loop.ts'
import { LatencyHistogram } from './latency.ts'
import type { LoadPlan, LoadResult } from './plan.ts'
import { type Clocks, readClocks, usageBetween } from './usage.ts'

/** Puts the load of a plan on a server and counts the answers in the measured window. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const latency = new LatencyHistogram()
  const counts = { ok: 0, non2xx: 0, errors: 0 }
  const events = {
    answered(ok: boolean, latencyMs: number) {
      if (ok) counts.ok++
      else counts.non2xx++
      latency.record(latencyMs)
    },
    failed() {
      counts.errors++
    },
  }
  const requests = plan.requests.map((text) => Buffer.from(text))
  const callers = Array.from({ length: plan.connections }, (_, index) => new Caller(plan, requests, index, events))
  try {
    await sleep(plan.warmupMs)
    const warmupOk = counts.ok
    Object.assign(counts, { ok: 0, non2xx: 0, errors: 0 })
    latency.clear()
    const start = readClocks(plan.observedPid)
    await sleep(plan.measureMs)
    const end = readClocks(plan.observedPid)
    return summarize({ ...counts, okWithWarmup: warmupOk + counts.ok }, latency, start, end)
  } finally {
    for (const caller of callers) caller.close()
  }
}

function summarize(
  counts: { ok: number; okWithWarmup: number; non2xx: number; errors: number },
  latency: LatencyHistogram,
  start: Clocks,
  end: Clocks,
): LoadResult {
  const { elapsedMs, ownUs, serverUs, serverMainUs, otherCores } = usageBetween(start, end)
  const perRequest = (us: number) => (counts.ok === 0 ? 0 : us / counts.ok)
  return {
    ...counts,
    elapsedMs,
    okPerSec: (counts.ok / elapsedMs) * 1000,
    latencyMs: { p50: latency.percentileMs(0.5), p99: latency.percentileMs(0.99), max: latency.maxMs },
    serverCpuUsPerRequest: serverUs === null ? null : perRequest(serverUs),
    serverMainCpuUsPerRequest: serverMainUs === null ? null : perRequest(serverMainUs),
    otherCores,
    loadCpuUsPerRequest: perRequest(ownUs),
  }
}
