// The two kinds of load: as many users as connections, and requests at a fixed rate.
import { setTimeout as sleep } from 'node:timers/promises'
import { residentBytes } from '../cpu.ts'
import type { Target } from './client.ts'
import { Arrivals, Caller, type CallerEvents, OpenLoop } from './loops.ts'
import type { LoadPlan, LoadResult, RatePlan, RateResult } from './plan.ts'
import { LatencyHistogram, Tally } from './tally.ts'
import { type Clocks, readClocks, usageBetween } from './usage.ts'

/** Puts the load of a plan on a server and counts the answers in the measured window. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const latency = new LatencyHistogram()
  const counts = { ok: 0, non2xx: 0, errors: 0 }
  const callers = startCallers(plan, plan, counts, latency)
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
  const { atMs: elapsedMs, ownUs, serverUs, serverMainUs, otherCores } = usageBetween(start, end)
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

/** The shortest timer. Requests are sent late by up to this, but their time counts from when they were due. */
const TICK_MS = 1
const MEMORY_LOOK_MS = 100
const DRAIN_LOOK_MS = 10

/** Puts the streams of a plan on a server and reports the outcome of every request. */
export async function runRates(plan: RatePlan): Promise<RateResult> {
  const loops = plan.streams.map(({ requests }) => new OpenLoop(plan, buffers(requests)))
  const callers: Caller[] = []
  const counts = { ok: 0, non2xx: 0, errors: 0 }
  let ticker: NodeJS.Timeout | undefined
  let tallies: Tally[] = []
  try {
    await Promise.all(loops.map((loop, index) => loop.open(plan.streams[index]!.connections)))
    // Whole milliseconds, because with a fraction rounding would decide whether a request at the edge is in the window.
    const startMs = Math.ceil(performance.now())
    const fromMs = startMs + plan.warmupMs
    const untilMs = fromMs + plan.measureMs
    tallies = plan.streams.map(({ name }) => new Tally(name, fromMs, untilMs))
    const startAll = (sinceMs: number, endMs: number) => {
      for (const [index, loop] of loops.entries()) {
        loop.start(new Arrivals(plan.streams[index]!.perSec, sinceMs, endMs), tallies[index]!)
      }
    }
    startAll(startMs, fromMs)
    ticker = setInterval(() => {
      const nowMs = performance.now()
      for (const loop of loops) loop.pump(nowMs)
    }, TICK_MS)
    await sleep(plan.warmupMs)
    // Requests that could not be sent by now are dropped, so that the window does not begin with a backlog of the generator.
    startAll(fromMs, untilMs)
    const before = readClocks(plan.observedPid)
    if (plan.callers) callers.push(...startCallers(plan, plan.callers, counts))
    const resident = await watchMemory(plan.observedPid, untilMs)
    const usage = usageBetween(before, readClocks(plan.observedPid))
    const drainedByMs = untilMs + plan.drainMs
    for (const loop of loops) loop.finish()
    while (performance.now() < drainedByMs && !loops.every((loop) => loop.isQuiet)) await sleep(DRAIN_LOOK_MS)
    for (const loop of loops) loop.close()
    const streams = tallies.map((tally) => tally.result())
    const { atMs: elapsedMs, ownUs, otherCores, ownWaitUs, serverMainWaitUs } = usage
    const shareOf = (us: number | null) => (us === null ? null : us / 1000 / elapsedMs)
    return {
      streams,
      callers: counts,
      residentBytes: resident,
      loadCores: ownUs / 1000 / elapsedMs,
      otherCores,
      loadWaitShare: shareOf(ownWaitUs),
      serverWaitShare: shareOf(serverMainWaitUs),
    }
  } finally {
    clearInterval(ticker)
    for (const caller of callers) caller.close()
    for (const loop of loops) loop.close()
  }
}

/** Callers that count what they get, and how long it took where that is wanted. */
function startCallers(
  target: Target,
  { requests, connections }: NonNullable<RatePlan['callers']>,
  counts: RateResult['callers'],
  latency?: LatencyHistogram,
): Caller[] {
  const events: CallerEvents = {
    answered(ok, latencyMs) {
      if (ok) counts.ok++
      else counts.non2xx++
      latency?.record(latencyMs)
    },
    failed() {
      counts.errors++
    },
  }
  const bytes = buffers(requests)
  return Array.from({ length: connections }, (_, index) => new Caller(target, bytes, index, events))
}

/** Samples memory until the window ends. */
async function watchMemory(pid: number | undefined, untilMs: number): Promise<number[]> {
  const samples: number[] = []
  for (;;) {
    if (pid !== undefined) samples.push(residentBytes(pid))
    const leftMs = untilMs - performance.now()
    if (leftMs <= 0) return samples
    await sleep(Math.min(MEMORY_LOOK_MS, leftMs))
  }
}

function buffers(texts: readonly string[]): Buffer[] {
  return texts.map((text) => Buffer.from(text))
}
