// How long a cancel takes until the signal of a handler in another process is aborted.
import { type CaseContext, type CaseResult, figureTo, type Row } from '../bench-case.ts'
import { inChild, Owner } from '../child.ts'
import type { MeasureCancels } from '../peers/bullmq/plan.ts'
import { median } from '../report.ts'
import type { BenchServer } from '../server.ts'
import { ask, type Stage, startOn, until } from './stage.ts'

const PROBES = 20
const MOST_MS = 200
const SIDES = ['heddle', 'bullmq'] as const
type Cancels = Record<(typeof SIDES)[number], number[][]>

export async function measureCancels(context: CaseContext, stage: Stage): Promise<CaseResult> {
  const owner = new Owner()
  const measured: Cancels = { heddle: [], bullmq: [] }
  try {
    const pair = context.baselinesOnly ? [] : await startPair(context, owner, stage)
    for (let round = 1; round <= context.rounds; round++) {
      context.step(`round ${round} of ${context.rounds}, cancel in another process`)
      if (!context.baselinesOnly) measured.heddle.push(await cancelledIn(pair))
      const plan = { access: stage.redis, probes: PROBES }
      measured.bullmq.push(await inChild<MeasureCancels>('peers/bullmq/cancels.mjs', plan))
      const told = SIDES.map((side) => `${side} ${figure(measured[side].slice(-1), median)?.toFixed(0) ?? '–'} ms`)
      context.say(`round ${round} cancel: ${told.join(', ')}`)
    }
  } finally {
    await owner.end()
  }
  return { rows: [rowOf(measured)], details: { cancels: measured } }
}

const figure = (rounds: readonly number[][], of: (tookMs: number[]) => number | null): number | null =>
  median(rounds.flatMap((tookMs) => of(tookMs) ?? []))

function rowOf({ heddle, bullmq }: Cancels): Row {
  const [own, other] = [figure(heddle, median), figure(bullmq, median)]
  const worst = (rounds: number[][]) => (rounds.length === 0 ? '–' : Math.max(...rounds.flat()).toFixed(0))
  return {
    label: 'work: a cancel until the signal of a handler in another process, PostgreSQL',
    unit: 'ms',
    heddle: own,
    baseline: other,
    baselineName: 'BullMQ: a message of its Relay, which the worker passes to cancelJob',
    ratio: own === null || other === null ? null : own / other,
    target: figureTo('at most', MOST_MS, 'ms'),
    faults: [],
    note: `at most ${worst(heddle)} and ${worst(bullmq)} ms; a running handler of pg-boss 10 or graphile-worker 0.16 hears of no cancel`,
  }
}

/** Two processes on one database, each with some of the events. */
export async function startPair(context: CaseContext, owner: Owner, stage: Stage): Promise<BenchServer[]> {
  const env = await stage.settings('PostgreSQL')
  const servers: BenchServer[] = []
  for (const name of ['a', 'b'])
    servers.push(await startOn(context, owner, { ...env, REPLICA_ID: name }, `work-pair-${name}`))
  await until(async () => {
    const { ids } = await ask<{ ids: string[] }>(servers[0]!, 'begin', { events: 16 })
    let has: boolean[] = []
    await until(async () => {
      const running = await Promise.all(servers.map(runningIn))
      has = running.map((of) => of.length > 0)
      return ids.every((id) => running.some((of) => of.includes(id)))
    }, 'all of some handlers run')
    await ask(servers[0]!, 'cancel-all', {})
    await untilNoneRuns(servers)
    return has.every((some) => some)
  }, 'both processes handle events')
  return servers
}

export const runningIn = async (server: BenchServer): Promise<string[]> =>
  (await ask<{ ids: string[] }>(server, 'running')).ids

export const untilNoneRuns = (servers: readonly BenchServer[]): Promise<void> =>
  until(async () => (await Promise.all(servers.map(runningIn))).flat().length === 0, 'no handler runs')

/** Each event is cancelled by the process that does not handle it. */
async function cancelledIn(servers: readonly BenchServer[]): Promise<number[]> {
  const tookMs: number[] = []
  for (let probe = 0; probe < PROBES; probe++) {
    const { ids } = await ask<{ ids: string[] }>(servers[probe % 2]!, 'begin', { events: 1 })
    const id = ids[0]!
    let handler: BenchServer | undefined
    await until(async () => {
      const running = await Promise.all(servers.map(runningIn))
      handler = servers[running.findIndex((of) => of.includes(id))]
      return handler !== undefined
    }, 'the handler runs')
    const { askedAtMs } = await ask<{ askedAtMs: number }>(servers.find((server) => server !== handler)!, 'cancel', {
      id,
    })
    let abortedAtMs: number | null = null
    await until(async () => {
      abortedAtMs = (await ask<{ atMs: number | null }>(handler!, `aborted/${id}`)).atMs
      return abortedAtMs !== null
    }, 'the signal is aborted')
    tookMs.push(abortedAtMs! - askedAtMs)
  }
  return tookMs
}
