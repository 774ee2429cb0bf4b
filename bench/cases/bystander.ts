import { type BenchCase, type CaseContext, figureTo, noteOf, type Row } from '../bench-case.ts'
import { busyNote, inTurn, outcomesOf } from '../comparison.ts'
import { getRequest } from '../load/client.ts'
import type { RateResult, RateStream, StreamResult } from '../load/plan.ts'
import { iterationsFor } from '../machine.ts'
import { median } from '../report.ts'
import { askJson, type BenchServer, heddleSide, serverSide } from '../server.ts'
import { itemTo } from './write.ts'

const LANES = 2
const WARMUP_MS = 2000
const ROUNDS_MAX = 3
/** Long enough for two lanes to be stopped with the default LANE_STALL_MS of 10 s, and for a calm time in between. */
const SPIN_WINDOW_MS = 25_000
const DEATHS = 2
/** Shorter, for a server that does not answer any more. */
const BASELINE_SPIN_WINDOW_MS = 5000
const BURN_WINDOW_MS = 10_000
const BURN_MS = 200
const DRAIN_MS = 2000
/** A process in an endless loop does not handle signals. */
const BASELINE_STOP_TIMEOUT_MS = 1000

/** Streams of requests whose users do not wait for each other. */
export const STREAMS: readonly RateStream[] = [
  { name: 'GET /hello/:name', requests: [getRequest('/hello/ada')], perSec: 500, connections: 128 },
  { name: 'POST /bench/items', requests: [itemTo('/bench/items')], perSec: 200, connections: 64 },
  { name: 'GET /system/status', requests: [getRequest('/system/status')], perSec: 20, connections: 8 },
]
const P99_LIMIT_MS = [20, 20, 10]

/** The requests that one caller sends without a pause during the streams. */
export interface Disturbance {
  label: string
  path: string
  windowMs: { heddle: number; baseline: number }
  /** Lanes that it ends in the window. */
  deaths: number
}

/** Results by side and round. */
type Rounds = Record<string, RateResult[]>

export const bystander: BenchCase = {
  name: 'bystander',
  title: 'Other routes at a fixed rate while one route keeps one lane of two busy, or spins in it until it dies',
  async run(context) {
    const disturbances: Disturbance[] = [
      {
        label: 'an endless loop',
        path: '/bench/spin',
        windowMs: { heddle: SPIN_WINDOW_MS, baseline: BASELINE_SPIN_WINDOW_MS },
        deaths: DEATHS,
      },
      {
        label: `${BURN_MS} ms of CPU per call`,
        path: `/bench/cpu/${iterationsFor(BURN_MS)}`,
        windowMs: { heddle: BURN_WINDOW_MS, baseline: BURN_WINDOW_MS },
        deaths: 0,
      },
    ]
    const rows: Row[] = []
    const details: Record<string, Rounds> = {}
    for (const disturbance of disturbances) {
      const sides = await measure(context, disturbance)
      rows.push(...STREAMS.map((_, index) => rowOf(disturbance, index, sides)))
      details[disturbance.label] = sides
    }
    return { rows, details }
  },
}

async function measure(context: CaseContext, { label, path, windowMs }: Disturbance): Promise<Rounds> {
  const sides = {
    ...heddleSide(context, 'heddle', LANES),
    ...serverSide(context, 'fastify', 'bench/baselines/shared-thread-fastify.ts', {
      stopTimeoutMs: BASELINE_STOP_TIMEOUT_MS,
    }),
  }
  const trial = async (server: BenchServer, side: string, round: number): Promise<RateResult> => {
    await verifyAnswers(server)
    const result = await context.load.offer({
      ...server.target,
      streams: [...STREAMS],
      callers: { requests: [getRequest(path)], connections: 1 },
      warmupMs: WARMUP_MS,
      measureMs: side === 'heddle' ? windowMs.heddle : windowMs.baseline,
      drainMs: DRAIN_MS,
    })
    context.say(`${label}, round ${round} ${server.name.padEnd(7)} ${describe(result)}`)
    return result
  }
  const rounds = Math.min(context.rounds, ROUNDS_MAX)
  return inTurn(context, sides, trial, { rounds, what: `${label}, ` })
}

/** Checks that all sides do the work before they are disturbed. */
async function verifyAnswers(server: BenchServer): Promise<void> {
  await askJson(server, '/hello/ada')
  await askJson(server, '/bench/items', { post: { name: 'first', quantity: 1 }, status: 201 })
  await askJson(server, '/system/status')
}

/** One stream's row. Its p99 includes all good answers, also those that waited, were moved to another lane or came late. */
export function rowOf({ label, deaths }: Disturbance, index: number, { heddle = [], fastify = [] }: Rounds): Row {
  const { name } = STREAMS[index]!
  const ours = heddle.map(({ streams }) => streams[index]!)
  const theirs = fastify.map(({ streams }) => streams[index]!)
  // Each failed call of the caller has ended a lane.
  const died = heddle.map(({ callers }) => callers.non2xx)
  return {
    label: `bystander: ${name} p99 beside ${label}`,
    unit: 'ms',
    heddle: median(ours.map(({ okMs }) => okMs.p99)),
    baseline: median(theirs.map(({ allMs }) => allMs.p99)),
    baselineName: 'Fastify',
    ratio: null,
    target: figureTo('under', P99_LIMIT_MS[index]!, 'ms'),
    faults: [
      ...ours.flatMap(faultsOf),
      ...died
        .filter((count) => (deaths === 0 ? count > 0 : count < deaths))
        .map((count) => `heddle: ${count} lanes died in a window, not ${deaths}`),
    ],
    ...noteOf(...notesOn(ours, theirs), busyNote({ heddle })),
  }
}

/** Requests in a lane that ends are answered with 500 or 504. Any other failure is one of an uninvolved request. */
function inDyingLane({ statuses }: StreamResult): number {
  return (statuses[500] ?? 0) + (statuses[504] ?? 0)
}

function faultsOf(stream: StreamResult): string[] {
  const { statuses, offered, ok, lost, unanswered, unsent } = stream
  const refused = offered - ok - inDyingLane(stream) - lost - unanswered - unsent
  return [
    ...(refused > 0 ? [`heddle: ${refused} of ${offered} refused (${JSON.stringify(statuses)})`] : []),
    ...(lost + unanswered + unsent > 0
      ? [`heddle: of ${offered} ${lost} lost, ${unanswered} unanswered, ${unsent} never sent`]
      : []),
    ...(ok === 0 ? ['heddle: a round without one good answer'] : []),
  ]
}

function notesOn(ours: StreamResult[], theirs: StreamResult[]): string[] {
  const sum = (streams: StreamResult[], of: (stream: StreamResult) => number) =>
    streams.reduce((total, stream) => total + of(stream), 0)
  const offered = (stream: StreamResult) => stream.offered
  const good = (stream: StreamResult) => stream.ok
  const slowestMs = Math.max(0, ...ours.map(({ okMs }) => okMs.max))
  return [
    `${sum(ours, inDyingLane)} of ${sum(ours, offered)} in a lane that died (500, 504), not in the p99`,
    `slowest other ${slowestMs} ms`,
    `sent late by the generator itself: p99 ${median(ours.map(({ sendDelayMs }) => sendDelayMs.p99)) ?? '–'} ms`,
    `Fastify answered ${sum(theirs, good)} of ${sum(theirs, offered)}, the others count until they were given up`,
  ]
}

function describe({ streams, callers, loadCores, otherCores }: RateResult): string {
  const parts = streams.map(
    (stream) => `${outcomesOf(stream)} p50 ${stream.okMs.p50} p99 ${stream.okMs.p99} max ${stream.okMs.max} ms`,
  )
  return `${parts.join('; ')}; caller ${callers.ok} good, ${callers.non2xx} failed; load ${loadCores.toFixed(2)} cores, others ${otherCores?.toFixed(2)}`
}
