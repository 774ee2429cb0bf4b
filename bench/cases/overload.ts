import { type BenchCase, type CaseContext, figureTo, noteOf, type Row, ratioTo } from '../bench-case.ts'
import { busyNote, faultsOf, figures, inTurn } from '../comparison.ts'
import { getRequest } from '../load/client.ts'
import type { LoadResult, RateResult, StreamResult } from '../load/plan.ts'
import { iterationsFor } from '../machine.ts'
import { median } from '../report.ts'
import { askJson, type BenchServer, heddleSide, serverSide } from '../server.ts'

/** The default number of lanes on a machine with two cores. */
const LANES = 1
const HANDLER_MS = 1
const OVERLOAD = 2
const PEAK_CONNECTIONS = 64
/** More connections than a lane takes requests (`LANE_MAX_INFLIGHT`, 1024), so that requests that wait do not reduce the load. */
const CONNECTIONS = 4096
const WARMUP_MS = 2000
/** Time until the queue is full and requests are refused. */
const FILL_MS = 3000
const WINDOW_MS = 6000
const DRAIN_MS = 4000
const PEAK_WINDOWS = 3
const PEAK_WINDOW_MS = 1500
/** Each window opens new connections. */
const REOPEN_MS = 200
const ROUNDS_MAX = 3
const STOP_TIMEOUT_MS = 3000
const BYTES_PER_MB = 1_000_000

export interface Route {
  label: string
  path: string
  /** What is overloaded first: the lane, then the surplus is refused; or the thread that reads, then the surplus waits to be read. */
  bottleneck: 'lane' | 'reader'
  /** Good answers at least, in percent of the peak. */
  shareMin: number
}

/** Measures on a separate server how much it can serve, and what happens with twice as much. */
export interface Round {
  /** The best of several windows, because a busy moment of the machine would make the load too small. Undefined for a server that refuses all. */
  peak: LoadResult | undefined
  overload: RateResult
}

/** Results by side and round. */
type Rounds = Record<string, Round[]>

/** A bare server that refuses all, offered the same where something is refused: what a time to a 503 consists of beside the runtime. */
const REFUSING = 'refusing'

export const overload: BenchCase = {
  name: 'overload',
  title: 'Twice the load that one lane can serve, offered at a fixed rate over 4,096 connections',
  async run(context) {
    const routes: Route[] = [
      {
        label: `${HANDLER_MS} ms of CPU`,
        path: `/bench/cpu/${iterationsFor(HANDLER_MS)}`,
        bottleneck: 'lane',
        shareMin: 90,
      },
      // So many connections cost the system and the generator, too, on any server.
      { label: 'GET /hello/:name', path: '/hello/ada', bottleneck: 'reader', shareMin: 75 },
    ]
    const rows: Row[] = []
    const details: Record<string, Rounds> = {}
    for (const route of routes) {
      const sides = await measure(context, route)
      rows.push(...rowsOf(route, sides))
      details[route.label] = sides
    }
    return { rows, details }
  },
}

async function measure(context: CaseContext, { label, path, bottleneck }: Route): Promise<Rounds> {
  const sides = {
    ...heddleSide(context, 'heddle', LANES),
    ...serverSide(context, 'fastify', 'bench/baselines/shared-thread-fastify.ts', { stopTimeoutMs: STOP_TIMEOUT_MS }),
    ...(bottleneck === 'lane' && serverSide(context, REFUSING, 'bench/baselines/refuse-uws.ts')),
  }
  const requests = [getRequest(path)]
  /** By round: twice the peak of its first side. */
  const offered: Record<number, number> = {}
  const trial = async (server: BenchServer, side: string, round: number): Promise<Round> => {
    const peak = side === REFUSING ? undefined : await peakOf(context, server, path)
    const perSec = peak === undefined ? offered[round]! : peak.okPerSec * OVERLOAD
    offered[round] ??= perSec
    const result = await context.load.offer({
      ...server.target,
      streams: [{ name: label, requests, perSec, connections: CONNECTIONS }],
      warmupMs: FILL_MS,
      measureMs: WINDOW_MS,
      drainMs: DRAIN_MS,
    })
    context.say(`${label}, round ${round} ${side.padEnd(8)} ${describe(peak, result)}`)
    return { peak, overload: result }
  }
  const rounds = Math.min(context.rounds, ROUNDS_MAX)
  return inTurn(context, sides, trial, { rounds, what: `${label}, ` })
}

async function peakOf(context: CaseContext, server: BenchServer, path: string): Promise<LoadResult> {
  await askJson(server, path)
  const load = { ...server.target, requests: [getRequest(path)], connections: PEAK_CONNECTIONS }
  let best: LoadResult | undefined
  for (let window = 0; window < PEAK_WINDOWS; window++) {
    const warmupMs = window === 0 ? WARMUP_MS : REOPEN_MS
    const result = await context.load.run({ ...load, warmupMs, measureMs: PEAK_WINDOW_MS })
    if (best === undefined || result.okPerSec > best.okPerSec) best = result
  }
  return best!
}

/** The rows: good answers in percent of the peak, the time to a refusal where there must be some, else Fastify's share, and the growth of memory. */
export function rowsOf(
  { label, bottleneck, shareMin }: Route,
  { heddle = [], fastify = [], [REFUSING]: refusing = [] }: Rounds,
): Row[] {
  const ours = heddle.map(streamOf)
  const faults = [
    ...faultsOf({ heddle: heddle.flatMap(({ peak }) => peak ?? []) }, 'heddle'),
    ...ours.flatMap((stream) => faultsOfStream(stream, bottleneck)),
  ]
  const busy = busyNote({ heddle: heddle.map(({ overload }) => overload) })
  const beside = (figure: (round: Round) => number) =>
    figures({ heddle, fastify }, figure, 'heddle', 'fastify', 'Fastify')
  const refusals: Row = {
    label: `overload: time to a 503 p99, ${label}`,
    unit: 'ms',
    heddle: median(ours.map(({ refusedSinceSentMs }) => refusedSinceSentMs.p99)),
    baseline: median(refusing.map((round) => streamOf(round).refusedSinceSentMs.p99)),
    baselineName: 'uWebSockets.js that refuses all',
    ratio: null,
    faults,
    target: figureTo('under', 5, 'ms'),
    note: [
      `p50 ${median(ours.map(({ refusedSinceSentMs }) => refusedSinceSentMs.p50))} ms`,
      `from when it was due, with the generator's own delay, p99 ${median(ours.map(({ refusedMs }) => refusedMs.p99))} ms`,
      `ready without a core: ${waits(heddle)}; beside the bare server ${waits(refusing)}`,
      'Fastify refuses nothing',
    ].join('; '),
  }
  const besideFastify: Row = {
    label: `overload: that share beside Fastify's, ${label}`,
    unit: '% of the peak',
    ...beside(percentOfPeak),
    target: ratioTo('at least', 1),
    faults,
  }
  return [
    {
      label: `overload: good answers at twice the peak, ${label}`,
      unit: '% of the peak',
      ...beside(percentOfPeak),
      ratio: null,
      target: figureTo('at least', shareMin, '% of the peak'),
      faults,
      ...noteOf(shares('heddle', ours), shares('Fastify', fastify.map(streamOf)), busy),
    },
    bottleneck === 'lane' ? refusals : besideFastify,
    {
      label: `overload: memory, second half of the window to the first, ${label}`,
      unit: '×',
      ...beside(memoryGrowth),
      ratio: null,
      target: figureTo('at most', 1.1, '×'),
      faults,
      note: `at most ${whole(heddle.map(memoryMaxMb))} MB resident, Fastify ${whole(fastify.map(memoryMaxMb))} MB`,
    },
  ]
}

/** For how much of the window the server's thread and the generator waited for a core: a refusal that comes then is late, whoever answers it. */
function waits(rounds: Round[]): string {
  const share = (of: (result: RateResult) => number | null) => {
    const shares = median(rounds.flatMap(({ overload }) => of(overload) ?? []))
    return shares === null ? '–' : `${(shares * 100).toFixed(1)} %`
  }
  return `the thread that answers ${share(({ serverWaitShare }) => serverWaitShare)} of the time, the generator ${share(({ loadWaitShare }) => loadWaitShare)}`
}

/** Describes what happened to the requests, and how long the good answers took. */
function shares(side: string, streams: StreamResult[]): string {
  const percent = (of: (stream: StreamResult) => number) =>
    `${whole(streams.map((stream) => (of(stream) / stream.offered) * 100))} %`
  return (
    `${side}: ${percent(({ ok }) => ok)} served, ${percent(({ statuses }) => statuses[503] ?? 0)} refused, ` +
    `${percent(({ lost, unanswered, unsent }) => lost + unanswered + unsent)} not reached; ` +
    `good answers p50 ${whole(streams.map(({ okMs }) => okMs.p50))} ms, p99 ${whole(streams.map(({ okMs }) => okMs.p99))} ms`
  )
}

function streamOf({ overload }: Round): StreamResult {
  return overload.streams[0]!
}

function percentOfPeak(round: Round): number {
  return (streamOf(round).okPerSec / round.peak!.okPerSec) * 100
}

/** The maximum in the second half of the window divided by the maximum in the first: near 1 when memory is bounded. */
export function memoryGrowth({ overload: { residentBytes } }: Round): number {
  const middle = residentBytes.length >> 1
  return Math.max(...residentBytes.slice(middle)) / Math.max(...residentBytes.slice(0, middle))
}

function memoryMaxMb({ overload: { residentBytes } }: Round): number {
  return Math.max(...residentBytes) / BYTES_PER_MB
}

/** Answers that are neither good nor a refusal with `retry-after`. */
function faultsOfStream(stream: StreamResult, bottleneck: Route['bottleneck']): string[] {
  const { statuses, offered, ok, lost, unanswered, unsent, withoutRetryAfter } = stream
  const refused = statuses[503] ?? 0
  const others = offered - ok - refused - lost - unanswered - unsent
  const isLane = bottleneck === 'lane'
  return [
    ...(others > 0 ? [`heddle: ${others} of ${offered} answered otherwise (${JSON.stringify(statuses)})`] : []),
    ...(lost + unanswered > 0 ? [`heddle: of ${offered} ${lost} lost, ${unanswered} unanswered`] : []),
    ...(isLane && unsent > 0 ? [`heddle: ${unsent} of ${offered} never sent`] : []),
    ...(isLane && refused === 0 ? ['heddle: nothing was refused'] : []),
    ...(withoutRetryAfter > 0 ? [`heddle: ${withoutRetryAfter} times 503 without retry-after`] : []),
  ]
}

function whole(values: number[]): string {
  return median(values)?.toFixed(0) ?? '–'
}

/** @param peak undefined for a server that has none */
function describe(peak: LoadResult | undefined, { streams, residentBytes, loadCores, otherCores }: RateResult): string {
  const { statuses, offered, okPerSec, okMs, refusedSinceSentMs, sendDelayMs } = streams[0]!
  const before = peak === undefined ? '' : `peak ${Math.round(peak.okPerSec)}/s, then `
  return (
    `${before}of ${offered} offered ${JSON.stringify(statuses)}: ${Math.round(okPerSec)}/s good, p99 ${okMs.p99} ms; 503 p99 ${refusedSinceSentMs.p99} ms; ` +
    `sent late p99 ${sendDelayMs.p99} ms; ${(Math.max(...residentBytes) / BYTES_PER_MB).toFixed(0)} MB; load ${loadCores.toFixed(2)} cores, others ${otherCores?.toFixed(2)}`
  )
}
