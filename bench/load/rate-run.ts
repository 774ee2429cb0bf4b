import { setTimeout as sleep } from 'node:timers/promises'
import { residentBytes } from '../cpu.ts'
import { Arrivals } from './arrivals.ts'
import { Caller } from './closed-loop.ts'
import { OpenLoop } from './open-loop.ts'
import type { RatePlan, RateResult } from './rate-plan.ts'
import { Tally } from './tally.ts'
import { readClocks, usageBetween } from './usage.ts'

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
    const { elapsedMs, ownUs, otherCores, ownWaitUs, serverMainWaitUs } = usage
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

function startCallers(
  target: RatePlan,
  { requests, connections }: NonNullable<RatePlan['callers']>,
  counts: RateResult['callers'],
): Caller[] {
  const events = {
    answered(ok: boolean) {
      if (ok) counts.ok++
      else counts.non2xx++
    },
    failed() {
      counts.errors++
    },
  }
  return Array.from({ length: connections }, (_, index) => new Caller(target, buffers(requests), index, events))
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
