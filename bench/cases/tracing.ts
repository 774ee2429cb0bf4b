import { alone, type BenchCase, type CaseContext, figureTo, type Row } from '../bench-case.ts'
import { compare, inTurn, type Keeping, keptRow, type Rounds } from '../comparison.ts'
import type { RateResult, StreamResult } from '../load/plan.ts'
import { median } from '../report.ts'
import { type BenchServer, heddleSide, startHeddle } from '../server.ts'
import { type DiscardCounts, startDiscardReceiver } from '../tracing/receiver.ts'
import { HELLO_LOAD, verifyHello } from './hello.ts'

const OFF = 'off'
/** V8 compiles the code that makes and exports spans for some seconds, on other threads; with a hundredth of the requests it takes longer. */
const WARMUP_MS = 7000
const SAMPLINGS: Record<string, Keeping> = {
  one: {
    label: '1 % sampled',
    env: { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' },
    atLeast: 0.95,
  },
  all: { label: 'all sampled', env: { OTEL_TRACES_SAMPLER: 'parentbased_always_on' }, atLeast: 0.65 },
}

/** Far below what the machine can serve, so that all spans can arrive. */
const CALM_PER_SEC = 10_000
const CALM_MS = 10_000
/** Spans of one request: the SERVER span and the handler's. */
const SPANS_PER_REQUEST = 2
const CALM_SIDE = 'calm'

/** What a receiver counted during the life of one server. */
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
    const calm = await measureCalm(context, received)
    return {
      rows: [
        ...Object.entries(SAMPLINGS).map(([side, sampling]) => rowOf(side, sampling, rounds, received[side] ?? [])),
        calm.row,
      ],
      details: { rounds, received, calm: calm.result },
    }
  },
}

/** Measures how many spans arrive from a service that is not at its limit. */
async function measureCalm(context: CaseContext, received: Received): Promise<{ row: Row; result: RateResult }> {
  const sides = { [CALM_SIDE]: () => startTraced(context, CALM_SIDE, SAMPLINGS.all!.env, received) }
  const offer = async (server: BenchServer): Promise<RateResult> => {
    await verifyHello(server)
    return context.load.offer({
      ...server.target,
      streams: [{ name: 'hello', perSec: CALM_PER_SEC, ...HELLO_LOAD }],
      warmupMs: 0,
      measureMs: CALM_MS,
      drainMs: 1000,
    })
  }
  // Stopping the server flushes the spans that were not exported yet.
  const { [CALM_SIDE]: results } = await inTurn(context, sides, offer, { rounds: 1, what: 'all sampled, ' })
  const result = results![0]!
  const [{ ok, offered }] = result.streams as [StreamResult]
  const share = received[CALM_SIDE]![0]!.spans / ((ok + 1) * SPANS_PER_REQUEST)
  const row = alone({
    label: `tracing: share of the spans that arrive, ${CALM_PER_SEC} requests/s, all sampled`,
    unit: 'share',
    heddle: share,
    target: figureTo('at least', 0.999, ''),
    faults: ok === offered ? [] : [`${offered - ok} of ${offered} requests were not answered with 200`],
  })
  return { row, result }
}

/** The runtime with its own receiver. The receiver outlives it, so spans that a stopping server flushes are counted too. */
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
        received[side] = [...(received[side] ?? []), receiver.stop()]
      },
    }
  } catch (error) {
    receiver.stop()
    throw error
  }
}

/** @param received one per round, like the results of a side */
export function rowOf(side: string, sampling: Keeping, rounds: Rounds, received: readonly DiscardCounts[]): Row {
  const results = rounds[side] ?? []
  const spansPerRequest = median(received.map(({ spans }, round) => spans / results[round]!.okWithWarmup))
  const arrived = `${spansPerRequest?.toPrecision(3) ?? 'no'} spans per request arrived`
  const row = keptRow('tracing', sampling, rounds, side, OFF, 'tracing off', arrived)
  const silent = received.some(({ spans }) => spans === 0) ? [`${side}: a round of which no span arrived`] : []
  return { ...row, faults: [...row.faults, ...silent] }
}
