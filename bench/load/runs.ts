// The two kinds of load: as many users as connections, and requests at a fixed rate.
import { setTimeout as sleep } from 'node:timers/promises'
import { residentBytes } from '../cpu.ts'
import { Arrivals, Callers, OpenLoop } from './loops.ts'
import type { LoadPlan, LoadResult, RatePlan, RateResult } from './plan.ts'
import { Tally } from './tally.ts'
import { readClocks, usageBetween } from './usage.ts'

/** Puts the load of a plan on a server and counts the answers in the measured window. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const callers = new Callers(plan, buffers(plan.requests), plan.connections)
  try {
    await sleep(plan.warmupMs)
    const warmupOk = callers.counts.ok
    callers.clear()
    const start = readClocks(plan.observedPid)
    await sleep(plan.measureMs)
    const end = readClocks(plan.observedPid)
    const { counts, latency } = callers
    const { atMs: elapsedMs, ownUs, serverUs, serverMainUs, otherCores } = usageBetween(start, end)
    const perRequest = (us: number) => (counts.ok === 0 ? 0 : us / counts.ok)
    return {
      ...counts,
      okWithWarmup: warmupOk + counts.ok,
      elapsedMs,
      okPerSec: (counts.ok / elapsedMs) * 1000,
      latencyMs: latency.summary(),
      serverCpuUsPerRequest: serverUs === null ? null : perRequest(serverUs),
      serverMainCpuUsPerRequest: serverMainUs === null ? null : perRequest(serverMainUs),
      otherCores,
      loadCpuUsPerRequest: perRequest(ownUs),
    }
  } finally {
    callers.close()
  }
}

/** The shortest timer. Requests are sent late by up to this, but their time counts from when they were due. */
const TICK_MS = 1
const MEMORY_LOOK_MS = 100
const DRAIN_LOOK_MS = 10

/** Puts the streams of a plan on a server and reports the outcome of every request. */
export async function runRates(plan: RatePlan): Promise<RateResult> {
  const loops = plan.streams.map(({ requests }) => new OpenLoop(plan, buffers(requests)))
  let callers: Callers | undefined
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
    if (plan.callers) callers = new Callers(plan, buffers(plan.callers.requests), plan.callers.connections)
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
      callers: callers?.counts ?? { ok: 0, non2xx: 0, errors: 0 },
      residentBytes: resident,
      loadCores: ownUs / 1000 / elapsedMs,
      otherCores,
      loadWaitShare: shareOf(ownWaitUs),
      serverWaitShare: shareOf(serverMainWaitUs),
    }
  } finally {
    clearInterval(ticker)
    callers?.close()
    for (const loop of loops) loop.close()
  }
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
