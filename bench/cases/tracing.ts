import type { BenchCase, CaseContext, Row } from '../bench-case.ts'
import { busyNote, compare, cpuUs, faultsOf, medianOf, medianRatio, perSec, type Rounds } from '../comparison.ts'
import { type BenchServer, heddleSide, startHeddle } from '../server.ts'
import { median } from '../statistics.ts'
import { startDiscardReceiver } from '../tracing/discard.ts'
import type { DiscardCounts } from '../tracing/receiver.ts'
import { HELLO_LOAD, verifyHello } from './hello.ts'

/** What a side with tracing is started with, and what it must keep of the throughput without. */
interface Sampling {
  label: string
  env: Record<string, string>
  atLeast: number
}

const OFF = 'off'
/** The compiler works on what makes and exports spans for some seconds, on threads of its own: with a hundredth of the requests for longer. */
const WARMUP_MS = 7000
const SAMPLINGS: Record<string, Sampling> = {
  one: {
    label: '1 % sampled',
    env: { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' },
    atLeast: 0.9,
  },
  all: { label: 'all sampled', env: { OTEL_TRACES_SAMPLER: 'parentbased_always_on' }, atLeast: 0.6 },
}

/** What a receiver has counted over the life of one server. */
type Received = Record<string, DiscardCounts[]>

export const tracing: BenchCase = {
  name: 'tracing',
  title: 'GET /hello/:name with tracing on, exported over OTLP/gRPC to a receiver that discards, beside tracing off',
  async run(context) {
    if (context.baselinesOnly) return { rows: [], details: null }
    const received: Received = {}
    const rounds = await compare(context, {
      sides: {
        ...heddleSide(context, OFF, 1),
        ...Object.fromEntries(
          Object.entries(SAMPLINGS).map(([side, { env }]) => [side, () => startTraced(context, side, env, received)]),
        ),
      },
      load: HELLO_LOAD,
      warmupMs: WARMUP_MS,
      before: verifyHello,
    })
    return {
      rows: Object.entries(SAMPLINGS).map(([side, sampling]) => rowOf(side, sampling, rounds, received[side] ?? [])),
      details: { rounds, received },
    }
  },
}

/** The runtime with a receiver of its own, which outlives it: what a stopping server still flushes is counted too. */
async function startTraced(
  context: CaseContext,
  side: string,
  env: Record<string, string>,
  received: Received,
): Promise<BenchServer> {
  const receiver = await startDiscardReceiver()
  try {
    const server = await startHeddle({
      name: side,
      lanes: 1,
      profileDir: context.profileDir(side),
      env: { OTEL_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint, ...env },
    })
    return {
      ...server,
      stop: async () => {
        await server.stop()
        const counts = await receiver.stop()
        received[side] = [...(received[side] ?? []), counts]
      },
    }
  } catch (error) {
    await receiver.stop()
    throw error
  }
}

/** @param received one per round, like the results of a side */
export function rowOf(side: string, sampling: Sampling, rounds: Rounds, received: readonly DiscardCounts[]): Row {
  const results = rounds[side] ?? []
  const spansPerRequest = median(received.map(({ spans }, round) => spans / results[round]!.okWithWarmup))
  const cpu = [medianOf(rounds, side, cpuUs), medianOf(rounds, OFF, cpuUs), medianRatio(rounds, side, OFF, cpuUs)]
  const [cpuOn, cpuOff, cpuRatio] = cpu.map((figure) => figure?.toFixed(2) ?? '–')
  const notes = [
    `CPU per request ${cpuOn} / ${cpuOff} µs, ${cpuRatio} ×`,
    `${spansPerRequest?.toPrecision(3) ?? 'no'} spans per request arrived`,
    busyNote(rounds).note,
  ]
  return {
    label: `tracing: requests per second, ${sampling.label}`,
    unit: 'requests/s',
    heddle: medianOf(rounds, side, perSec),
    baseline: medianOf(rounds, OFF, perSec),
    baselineName: 'tracing off',
    ratio: medianRatio(rounds, side, OFF, perSec),
    target: { of: 'ratio', sense: 'at least', value: sampling.atLeast, unit: '×' },
    faults: [
      ...faultsOf(rounds, side, OFF),
      ...(received.some(({ spans }) => spans === 0) ? [`${side}: a round of which no span arrived`] : []),
    ],
    note: notes.filter((note) => note !== undefined).join('; '),
  }
}
