import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import type { CaseContext } from '../bench-case.ts'
import { forkModule, nextMessage } from '../child.ts'
import { processCpuUs } from '../cpu.ts'
import { median } from '../report.ts'
import { askJson, type BenchServer, startHeddle } from '../server.ts'
import { BATCH, untilHandled } from '../ticks.ts'
import type { BareOrder, BareResult } from './bare-stream.ts'

const WARMUP_EVENTS = 100_000
/** Of one round of one side. */
const EVENTS = 100_000

export interface EventsFigures {
  /** Events per second, from the first publish to the last one handled: medians of the rounds. */
  heddle: number
  bare: number
  ratio: number
  /** CPU time per event of all processes of a side, and of the server's part of it, microseconds: medians of the rounds. */
  cpuUs: { heddle: Cost; bare: Cost }
  rounds: Round[]
  faults: string[]
}

interface Cost {
  all: number
  server: number
}

interface Round {
  heddle: number
  bare: number
  heddleCpu: Cost
  bareCpu: Cost
}

/** Measures events that are published on one replica and handled on another, compared with XADD, XREADGROUP and XACK between two processes. */
export async function measureEvents(context: CaseContext, env: Record<string, string>): Promise<EventsFigures> {
  const replica = (name: string): Promise<BenchServer> =>
    startHeddle({
      name,
      lanes: 1,
      env: { ...env, EVENT_BUS_DRIVER: 'keyvalue_streams', REPLICA_ID: name },
      profileDir: context.profileDir(name),
    })
  const ends: (() => Promise<void>)[] = []
  try {
    const publisher = await replica('replica-a')
    ends.push(publisher.stop)
    const consumer = await replica('replica-b')
    ends.push(consumer.stop)
    const bare = { publish: await startBare('publish', env), consume: await startBare('consume', env) }
    ends.push(async () => void [bare.publish, bare.consume].map((child) => child.disconnect()))

    // The publishing replica must not handle events itself.
    await order(publisher, { run: 'first', count: 0, leave: true })
    await heddleRound(publisher, consumer, 'warm-up', WARMUP_EVENTS)
    await bareRound(bare, 'warm-up', WARMUP_EVENTS)
    const server = await serverPid(env)
    const heddlePids = [publisher.pid, consumer.pid]
    const barePids = [bare.publish.pid!, bare.consume.pid!]
    const rounds: Round[] = []
    const faults: string[] = []
    for (let round = 1; round <= context.rounds; round++) {
      const run = `round-${round}`
      const before = cpuOf(heddlePids, server)
      const heddle = await heddleRound(publisher, consumer, run, EVENTS)
      const heddleCpu = costSince(before, heddlePids, server)
      const beforeBare = cpuOf(barePids, server)
      const rate = await bareRound(bare, run, EVENTS)
      const bareCpu = costSince(beforeBare, barePids, server)
      if (heddle.handled !== EVENTS) faults.push(`round ${round}: ${heddle.handled} handled of ${EVENTS}`)
      context.say(
        `events round ${round}: ${Math.round(heddle.perSec)}/s (${heddleCpu.all.toFixed(1)} µs, server ${heddleCpu.server.toFixed(1)}), ` +
          `bare ${Math.round(rate)}/s (${bareCpu.all.toFixed(1)} µs, server ${bareCpu.server.toFixed(1)})`,
      )
      rounds.push({ heddle: heddle.perSec, bare: rate, heddleCpu, bareCpu })
    }
    const heddle = median(rounds.map((round) => round.heddle)) ?? 0
    const bareRate = median(rounds.map((round) => round.bare)) ?? 0
    const costs = (of: (round: Round) => Cost): Cost => ({
      all: median(rounds.map((round) => of(round).all)) ?? 0,
      server: median(rounds.map((round) => of(round).server)) ?? 0,
    })
    const cpuUs = { heddle: costs(({ heddleCpu }) => heddleCpu), bare: costs(({ bareCpu }) => bareCpu) }
    return { heddle, bare: bareRate, ratio: heddle / bareRate, cpuUs, rounds, faults }
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

/** CPU time used so far, microseconds. */
function cpuOf(pids: readonly number[], server: number): Cost {
  const used = processCpuUs(server)
  return { all: pids.reduce((sum, pid) => sum + processCpuUs(pid), used), server: used }
}

/** Of each event of a round. */
function costSince(before: Cost, pids: readonly number[], server: number): Cost {
  const after = cpuOf(pids, server)
  return { all: (after.all - before.all) / EVENTS, server: (after.server - before.server) / EVENTS }
}

async function serverPid(env: Record<string, string>): Promise<number> {
  const { KV_HOST, KV_PORT, KV_PASSWORD } = env
  const redis = new Redis({ host: KV_HOST!, port: Number(KV_PORT), password: KV_PASSWORD! })
  const info = await redis.info('server')
  redis.disconnect()
  return Number(/^process_id:(\d+)/m.exec(info)![1])
}

async function order(server: BenchServer, body: object): Promise<{ startedAtMs: number }> {
  return (await askJson<{ data: { startedAtMs: number } }>(server, '/bench/publish', { post: body })).data
}

async function heddleRound(publisher: BenchServer, consumer: BenchServer, run: string, count: number) {
  const { startedAtMs } = await order(publisher, { run, count, batch: BATCH })
  return untilHandled(consumer, { run, count }, startedAtMs)
}

async function startBare(role: 'publish' | 'consume', env: Record<string, string>): Promise<ChildProcess> {
  const child = forkModule('elastic/bare-stream.ts', [role], { env })
  await nextMessage(child, `ioredis, which is to ${role},`)
  return child
}

async function bareRound(
  bare: Record<'publish' | 'consume', ChildProcess>,
  run: string,
  count: number,
): Promise<number> {
  const task: BareOrder = { run, count }
  const done = Object.values(bare).map((child) => once(child, 'message'))
  bare.consume.send(task)
  bare.publish.send(task)
  const [published, consumed] = (await Promise.all(done)).map(([result]) => result as BareResult)
  return (count / (consumed!.endedAtMs - published!.startedAtMs)) * 1000
}
