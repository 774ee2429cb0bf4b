import { availableParallelism } from 'node:os'
import { type BenchCase, type CaseContext, figureTo, noteOf, type Row, ratioTo, type Target } from '../bench-case.ts'
import { busyNote, cpuUs, faultsOf, figures, inTurn, type Measure, medianOf, perSec } from '../comparison.ts'
import { treeMemoryBytes } from '../cpu.ts'
import type { LoadResult, RateResult } from '../load/plan.ts'
import { installPeer } from '../peers/install.ts'
import { memoryRows, watchMemory } from '../peers/memory.ts'
import { formatGrid, whole } from '../report.ts'
import { type BenchServer, heddleSide, serverSide } from '../server.ts'
import { HELLO_LOAD, verifyHello } from './hello.ts'

const CONNECTIONS = [64, 8, 1, 512] as const
const PER_SEC = [1000, 5000, 20_000] as const
const WARMUP_MS = 2000
/** Between two loads on one server. */
const REST_WARMUP_MS = 500
const RATE_CONNECTIONS = 64
const RATE_DRAIN_MS = 1000
const MIB = 1 << 20

/** What one server has shown in one round. */
interface Seen {
  idleBytes: number
  /** By the number of connections. */
  closed: Record<number, LoadResult>
  /** By requests per second. */
  open: Record<number, RateResult>
  loadedBytes: number
}

type Rounds = Record<string, Seen[]>
type Figure = (seen: Seen) => number

const TITLES: Record<string, string> = {
  heddle: 'heddle, one lane',
  'heddle-2': 'heddle, two lanes',
  fastify: 'Fastify',
  cluster: `Fastify, cluster of ${availableParallelism()}`,
  nestjs: 'NestJS on Fastify',
  uws: 'bare uWebSockets.js',
}

export const peers: BenchCase = {
  name: 'peers',
  title: 'GET /hello/:name at every load, beside Fastify, its cluster, NestJS and bare uWebSockets.js',
  async run(context) {
    installPeer('nestjs', context.say)
    const sides = {
      ...heddleSide(context, 'heddle', 1),
      ...heddleSide(context, 'heddle-2', 2),
      ...serverSide(context, 'fastify', 'bench/baselines/hello-fastify.ts'),
      ...serverSide(context, 'cluster', 'bench/baselines/cluster-fastify.ts'),
      ...serverSide(context, 'nestjs', 'bench/peers/nestjs/hello.cjs'),
      ...serverSide(context, 'uws', 'bench/baselines/hello-uws.ts'),
    }
    const rounds: Rounds = await inTurn(context, sides, async (server, side, round) => {
      await verifyHello(server)
      const seen = await look(context, server)
      context.say(`round ${round} ${side.padEnd(9)} ${describe(seen)}`)
      return seen
    })
    context.say(`medians of ${context.rounds} rounds\n${gridOf(rounds)}`)
    const memory = await watchMemory(context, HELLO_LOAD)
    return { rows: [...rowsOf(rounds), ...memoryRows(memory)], details: { rounds, memory, grid: gridOf(rounds) } }
  },
}

/** Puts every load on one server, the busiest first: V8 has compiled the hot code then. */
async function look(context: CaseContext, { target, pid }: BenchServer): Promise<Seen> {
  const { requests } = HELLO_LOAD
  const { measureMs } = context
  const idleBytes = treeMemoryBytes(pid)
  const seen: Seen = { idleBytes, closed: {}, open: {}, loadedBytes: 0 }
  for (const [n, connections] of CONNECTIONS.entries()) {
    const warmupMs = n === 0 ? WARMUP_MS : REST_WARMUP_MS
    seen.closed[connections] = await context.load.run({ ...target, requests, connections, warmupMs, measureMs })
  }
  for (const perSec of PER_SEC) {
    const streams = [{ name: 'hello', requests, perSec, connections: RATE_CONNECTIONS }]
    const plan = { streams, warmupMs: REST_WARMUP_MS, measureMs, drainMs: RATE_DRAIN_MS }
    seen.open[perSec] = await context.load.offer({ ...target, ...plan })
  }
  seen.loadedBytes = treeMemoryBytes(pid)
  return seen
}

// ── figures ─────────────────────────────────────────────────────────────────

const closedAt =
  (connections: number, measure: Measure): Figure =>
  ({ closed }) =>
    measure(closed[connections]!)
const p50Us: Measure = ({ latencyMs }) => latencyMs.p50 * 1000
const p99Ms: Measure = ({ latencyMs }) => latencyMs.p99
/** From when each request was due. */
const dueAt =
  (perSec: number, percentile: 'p50' | 'p99' | 'p999'): Figure =>
  ({ open }) =>
    open[perSec]!.streams[0]!.allMs[percentile]
const idleMb: Figure = ({ idleBytes }) => idleBytes / MIB
const loadedMb: Figure = ({ loadedBytes }) => loadedBytes / MIB

function rowsOf(rounds: Rounds): Row[] {
  const results = Object.fromEntries(
    Object.entries(rounds).map(([side, seen]) => [side, seen.flatMap(({ closed }) => Object.values(closed))]),
  )
  const row = (
    label: string,
    unit: string,
    figure: Figure,
    target: Target | null,
    side = 'heddle',
    baseline = 'fastify',
  ): Row => ({
    label: `peers: ${label}`,
    unit,
    ...figures(rounds, figure, side, baseline, TITLES[baseline]!),
    target,
    faults: faultsOf(results, side, baseline),
    ...noteOf(busyNote(results)),
  })
  const cpu = 'µs CPU/request'
  const p50OverUs = medianOf(rounds, 'fastify', closedAt(1, p50Us))
  return [
    row('CPU, 64 connections', cpu, closedAt(64, cpuUs), ratioTo('at most', 0.6)),
    row('throughput, 64 connections', 'requests/s', closedAt(64, perSec), ratioTo('at least', 1.8)),
    row('CPU, 64 connections', cpu, closedAt(64, cpuUs), ratioTo('at most', 1.45), 'heddle', 'uws'),
    row('CPU, 8 connections', cpu, closedAt(8, cpuUs), ratioTo('at most', 1)),
    row('CPU, 1 connection', cpu, closedAt(1, cpuUs), ratioTo('at most', 1.25)),
    row(
      'p50, 1 connection',
      'µs',
      closedAt(1, p50Us),
      figureTo('at most', p50OverUs === null ? 0 : p50OverUs + 25, 'µs'),
    ),
    row('p99, 64 connections', 'ms', closedAt(64, p99Ms), ratioTo('at most', 1)),
    row('p99.9 at 20,000/s', 'ms', dueAt(20_000, 'p999'), ratioTo('at most', 1)),
    row(
      'two lanes to one, throughput',
      'requests/s',
      closedAt(64, perSec),
      ratioTo('at least', 0.9),
      'heddle-2',
      'heddle',
    ),
    row('two lanes to one, CPU', cpu, closedAt(64, cpuUs), ratioTo('at most', 1.15), 'heddle-2', 'heddle'),
  ]
}

/** One line for each server. */
function gridOf(rounds: Rounds): string {
  const connections = CONNECTIONS.toSorted((a, b) => a - b)
  const head = [
    '',
    ...connections.map((count) => `${count} conn: /s · µs CPU · p99 ms`),
    ...PER_SEC.map((rate) => `${rate.toLocaleString('en')}/s: p50 · p99 · p99.9 ms`),
    'MB idle · after',
  ]
  const lineOf = (side: string): string[] => {
    const all = (figure: Figure) => whole(medianOf(rounds, side, figure))
    const short = (figure: Figure) => medianOf(rounds, side, figure)?.toPrecision(3) ?? '–'
    return [
      TITLES[side]!,
      ...connections.map((count) => {
        const [cpu, p99] = [short(closedAt(count, cpuUs)), short(closedAt(count, p99Ms))]
        return `${all(closedAt(count, perSec))} · ${cpu} · ${p99}`
      }),
      ...PER_SEC.map((rate) => (['p50', 'p99', 'p999'] as const).map((at) => short(dueAt(rate, at))).join(' · ')),
      `${all(idleMb)} · ${all(loadedMb)}`,
    ]
  }
  return formatGrid([head, ...Object.keys(rounds).map(lineOf)])
}

function describe({ closed, open, loadedBytes }: Seen): string {
  const loads = CONNECTIONS.map((connections) => {
    const { okPerSec, serverCpuUsPerRequest, latencyMs } = closed[connections]!
    return `${connections}: ${Math.round(okPerSec)}/s ${serverCpuUsPerRequest?.toFixed(1)} µs p99 ${latencyMs.p99} ms`
  })
  const rates = PER_SEC.map((perSec) => `${perSec}/s p99.9 ${open[perSec]!.streams[0]!.allMs.p999} ms`)
  return [...loads, ...rates, `${Math.round(loadedBytes / MIB)} MB`].join(', ')
}
