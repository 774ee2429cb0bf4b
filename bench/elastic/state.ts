import { Redis } from 'ioredis'
import type { State } from '../../src/contracts/state.ts'
import type { ToolRuntime } from '../../src/contracts/tool.ts'
import { loadSettings } from '../../src/core/config/load.ts'
import RedisStateTool from '../../src/extras/redis-state/index.ts'
import { proxied } from '../micro/proxied-tool.ts'
import { median } from '../report.ts'

/** Calls in flight at any time, on both sides. */
const IN_FLIGHT = 256
const KEYS = 16
const WARMUP_MS = 500

export interface StateBenchOptions {
  /** `KV_*` of an empty database. */
  env: Record<string, string>
  /** Length of one round of one side. */
  roundMs: number
  rounds: number
}

export interface StateSide {
  /** Median of the rounds. */
  callsPerSec: number
  /** CPU of this process per call, median of the rounds. */
  cpuUs: number
  /** CPU of the server per call, median of the rounds. */
  serverCpuUs: number
  rounds: number[]
}

export interface StateFigures {
  /** `state.increment` through the tool-call proxy. */
  heddle: StateSide
  /** The same with a time to live, as a rate limit uses it. */
  heddleWindow: StateSide
  /** ioredis: a pipeline of as many INCRBY as are in flight, and the next one when all have been answered. */
  barePipeline: StateSide
  /** ioredis with its automatic pipelining: as many loops as are in flight. */
  bareLoops: StateSide
  /** Ratio of `heddle` to the faster one of the bare loops. */
  ratio: number
  /** Counters with a wrong sum. The figures are invalid unless it is empty. */
  faults: string[]
}

interface Side {
  prefix: string
  /** Adds 1 repeatedly until it is stopped. @returns how often */
  run(isOver: () => boolean): Promise<number>
}

/** Measures `state.increment` and bare loops of INCRBY in turn, each side with its own connection. */
export async function measureState(options: StateBenchOptions): Promise<StateFigures> {
  const { settings } = loadSettings({ AUTH_SECRET_KEY: 'x'.repeat(32), ...options.env })
  const { kvHost: host, kvPort: port, kvPassword: password, kvDb: db } = settings
  const connect = (more: object) => new Redis({ host, port, password, db, ...more })
  const [pipelined, looped, witness] = [connect({}), connect({ enableAutoPipelining: true }), connect({})]
  const runtime = { thread: { kind: 'lane', index: 0 }, settings, log: () => {} } as unknown as ToolRuntime
  const tool = new RedisStateTool(runtime)
  await tool.boot()
  const state = proxied<State>('state', tool.api())

  const sides = {
    heddle: loops('heddle:state:default:a', (key) => state.increment(key.slice(21))),
    heddleWindow: loops('heddle:state:default:b', (key) => state.increment(key.slice(21), 1, { ttlMs: 3_600_000 })),
    barePipeline: pipelines('bare:a', pipelined),
    bareLoops: loops('bare:b', (key) => looped.incrby(key, 1)),
  } satisfies Record<string, Side>

  const faults: string[] = []
  const measured = {} as Record<keyof typeof sides, Round[]>
  try {
    for (let round = -1; round < options.rounds; round++) {
      for (const [name, side] of Object.entries(sides) as [keyof typeof sides, Side][]) {
        const result = await runRound(side, witness, round < 0 ? WARMUP_MS : options.roundMs)
        if (result.counted !== result.calls) faults.push(`${name}: ${result.calls} calls, ${result.counted} counted`)
        if (round < 0) measured[name] = []
        else measured[name].push(result)
      }
    }
  } finally {
    await tool.stop()
    for (const client of [pipelined, looped, witness]) client.disconnect()
  }
  const [heddle, heddleWindow, barePipeline, bareLoops] = [
    sideOf(measured.heddle),
    sideOf(measured.heddleWindow),
    sideOf(measured.barePipeline),
    sideOf(measured.bareLoops),
  ]
  const ratio = heddle.callsPerSec / Math.max(barePipeline.callsPerSec, bareLoops.callsPerSec)
  return { heddle, heddleWindow, barePipeline, bareLoops, ratio, faults }
}

function loops(prefix: string, increment: (key: string) => Promise<unknown>): Side {
  const loop = async (key: string, isOver: () => boolean): Promise<number> => {
    let calls = 0
    for (; !isOver(); calls++) await increment(key)
    return calls
  }
  return {
    prefix,
    run: async (isOver) => {
      const counts = await Promise.all(Array.from({ length: IN_FLIGHT }, (_, n) => loop(keyOf(prefix, n), isOver)))
      return counts.reduce((sum, count) => sum + count, 0)
    },
  }
}

function pipelines(prefix: string, redis: Redis): Side {
  const keys = Array.from({ length: IN_FLIGHT }, (_, n) => keyOf(prefix, n))
  return {
    prefix,
    run: async (isOver) => {
      let calls = 0
      for (; !isOver(); calls += IN_FLIGHT) {
        const pipeline = redis.pipeline()
        for (const key of keys) pipeline.incrby(key, 1)
        await pipeline.exec()
      }
      return calls
    },
  }
}

function keyOf(prefix: string, n: number): string {
  return `${prefix}${n % KEYS}`
}

interface Round {
  calls: number
  counted: number
  callsPerSec: number
  cpuUs: number
  serverCpuUs: number
}

async function runRound(side: Side, witness: Redis, roundMs: number): Promise<Round> {
  const keys = Array.from({ length: KEYS }, (_, n) => keyOf(side.prefix, n))
  await witness.del(keys)
  const serverBeforeUs = await serverCpuUs(witness)
  const before = process.cpuUsage()
  const startedMs = performance.now()
  const calls = await side.run(() => performance.now() - startedMs >= roundMs)
  const seconds = (performance.now() - startedMs) / 1000
  const { user, system } = process.cpuUsage(before)
  const serverUs = (await serverCpuUs(witness)) - serverBeforeUs
  const counted = (await witness.mget(keys)).reduce((sum, text) => sum + Number(text), 0)
  return { calls, counted, callsPerSec: calls / seconds, cpuUs: (user + system) / calls, serverCpuUs: serverUs / calls }
}

async function serverCpuUs(redis: Redis): Promise<number> {
  const info = await redis.info('cpu')
  const seconds = (field: string) => Number(new RegExp(`^${field}:(\\S+)`, 'm').exec(info)?.[1])
  return (seconds('used_cpu_sys') + seconds('used_cpu_user')) * 1e6
}

function sideOf(rounds: Round[]): StateSide {
  const of = (field: 'callsPerSec' | 'cpuUs' | 'serverCpuUs') => median(rounds.map((round) => round[field]))!
  return {
    callsPerSec: of('callsPerSec'),
    cpuUs: of('cpuUs'),
    serverCpuUs: of('serverCpuUs'),
    rounds: rounds.map(({ callsPerSec }) => Math.round(callsPerSec)),
  }
}
