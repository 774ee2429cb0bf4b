import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { processCpuUs } from '../cpu.ts'
import type { TickCount } from '../domains/bench/tick-count.ts'
import { median } from '../report.ts'
import { askJson, type BenchServer, startHeddle } from '../server.ts'
import type { BareOrder, BareResult } from './bare-stream.ts'

const BARE_FILE = fileURLToPath(new URL('./bare-stream.ts', import.meta.url))
const WARMUP_EVENTS = 100_000
const BATCH = 1000
const DEADLINE_MS = 60_000

export interface EventsPlan {
  /** `KV_*` of an empty database. */
  env: Record<string, string>
  /** Events of one round of one side. */
  events: number
  rounds: number
  /** Where the servers leave their CPU profiles; undefined when none are wanted. */
  profileDir: (server: string) => string | undefined
  say: (text: string) => void
}

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
export async function measureEvents(plan: EventsPlan): Promise<EventsFigures> {
  const { env, events, say } = plan
  const replica = (name: string): Promise<BenchServer> =>
    startHeddle({
      name,
      lanes: 1,
      env: { ...env, EVENT_BUS_DRIVER: 'keyvalue_streams', REPLICA_ID: name },
      profileDir: plan.profileDir(name),
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
    for (let round = 1; round <= plan.rounds; round++) {
      const before = cpuOf(heddlePids, server)
      const heddle = await heddleRound(publisher, consumer, `round-${round}`, events)
      const heddleCpu = costOf(before, cpuOf(heddlePids, server), events)
      const beforeBare = cpuOf(barePids, server)
      const rate = await bareRound(bare, `round-${round}`, events)
      const bareCpu = costOf(beforeBare, cpuOf(barePids, server), events)
      if (heddle.handled !== events) faults.push(`round ${round}: ${heddle.handled} handled of ${events}`)
      say(
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

function costOf(before: Cost, after: Cost, events: number): Cost {
  return { all: (after.all - before.all) / events, server: (after.server - before.server) / events }
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

async function heddleRound(
  publisher: BenchServer,
  consumer: BenchServer,
  run: string,
  count: number,
): Promise<{ handled: number; perSec: number }> {
  const { startedAtMs } = await order(publisher, { run, count, batch: BATCH })
  const deadlineMs = performance.now() + DEADLINE_MS
  for (;;) {
    const reply = await askJson<{ data: { lanes: Record<string, TickCount> } }>(consumer, '/bench/count')
    const lanes = Object.values(reply.data.lanes).filter((lane) => lane.run === run)
    const handled = lanes.reduce((sum, lane) => sum + lane.handled, 0)
    if (handled >= count || performance.now() > deadlineMs) {
      const elapsedMs = Math.max(...lanes.map((lane) => lane.lastAtMs)) - startedAtMs
      return { handled, perSec: (handled / elapsedMs) * 1000 }
    }
    await sleep(10)
  }
}

async function startBare(role: 'publish' | 'consume', env: Record<string, string>): Promise<ChildProcess> {
  const child = fork(BARE_FILE, [role], {
    env: { ...process.env, ...env },
    execArgv: ['--import', import.meta.resolve('tsx')],
  })
  await once(child, 'message')
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
