import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import type { CaseContext } from '../bench-case.ts'
import { forkModule, nextMessage, Owner } from '../child.ts'
import { processCpuUs } from '../cpu.ts'
import { type BenchServer, startHeddle } from '../server.ts'
import { publishingThread, type TickRun, tickRun } from '../ticks.ts'
import type { BareOrder, BareResult } from './bare-stream.ts'

const WARMUP_EVENTS = 100_000
/** Of one round of one side. */
const EVENTS = 100_000

type Run = Pick<TickRun, 'perSec' | 'handled' | 'published'>

/** One round of a side. */
interface Round extends Run {
  /** CPU time per event of all processes of the side, and of the server's part of it, microseconds. */
  allUs: number
  serverUs: number
}

/** Measures events that are published on one replica and handled on another, compared with XADD, XREADGROUP and XACK between two processes. */
export async function measureEvents(context: CaseContext, env: Record<string, string>) {
  const replica = (name: string): Promise<BenchServer> =>
    startHeddle({
      name,
      lanes: 1,
      env: { ...env, EVENT_BUS_DRIVER: 'keyvalue_streams', REPLICA_ID: name },
      profileDir: context.profileDir(name),
    })
  const owner = new Owner()
  try {
    const publisher = await replica('replica-a')
    owner.after(publisher.stop)
    const consumer = await replica('replica-b')
    owner.after(consumer.stop)
    const bare = { publish: await startBare('publish', env), consume: await startBare('consume', env) }
    owner.after(() => [bare.publish, bare.consume].map((child) => child.disconnect()))

    // The publishing replica must not handle events itself.
    const thread = await publishingThread(publisher)
    await tickRun(publisher, { run: 'warm-up', thread, count: WARMUP_EVENTS }, consumer)
    await bareRound(bare, 'warm-up', WARMUP_EVENTS)
    const server = await serverPid(env)
    const measured = async (pids: number[], run: () => Promise<Run>): Promise<Round> => {
      const clocks = () => [...pids, server].map(processCpuUs)
      const before = clocks()
      const { perSec, handled, published } = await run()
      const costs = clocks().map((us, n) => (us - before[n]!) / EVENTS)
      return { perSec, handled, published, allUs: costs.reduce((sum, us) => sum + us, 0), serverUs: costs.at(-1)! }
    }
    const rounds: Record<'heddle' | 'bare', Round[]> = { heddle: [], bare: [] }
    for (let round = 1; round <= context.rounds; round++) {
      const run = `round-${round}`
      const heddle = await measured([publisher.pid, consumer.pid], () =>
        tickRun(publisher, { run, thread, count: EVENTS }, consumer),
      )
      const driver = await measured([bare.publish.pid!, bare.consume.pid!], () => bareRound(bare, run, EVENTS))
      rounds.heddle.push(heddle)
      rounds.bare.push(driver)
      const told = ({ perSec, allUs, serverUs }: Round) =>
        `${Math.round(perSec)}/s (${allUs.toFixed(1)} µs, server ${serverUs.toFixed(1)})`
      context.say(`events round ${round}: ${told(heddle)}, bare ${told(driver)}`)
    }
    return rounds
  } finally {
    await owner.end()
  }
}

async function serverPid(env: Record<string, string>): Promise<number> {
  const { KV_HOST, KV_PORT, KV_PASSWORD } = env
  const redis = new Redis({ host: KV_HOST!, port: Number(KV_PORT), password: KV_PASSWORD! })
  const info = await redis.info('server')
  redis.disconnect()
  return Number(/^process_id:(\d+)/m.exec(info)![1])
}

async function startBare(role: 'publish' | 'consume', env: Record<string, string>): Promise<ChildProcess> {
  const child = forkModule('elastic/bare-stream.ts', [role], { env })
  await nextMessage(child, `ioredis, which is to ${role},`)
  return child
}

async function bareRound(bare: Record<'publish' | 'consume', ChildProcess>, run: string, count: number): Promise<Run> {
  const task: BareOrder = { run, count }
  const done = Object.values(bare).map((child) => once(child, 'message'))
  bare.consume.send(task)
  bare.publish.send(task)
  const [published, consumed] = (await Promise.all(done)).map(([result]) => result as BareResult)
  return { perSec: (count / (consumed!.endedAtMs - published!.startedAtMs)) * 1000, handled: count, published: count }
}
