import { Redis } from 'ioredis'
import type { State } from '../../src/contracts/state.ts'
import { loadSettings } from '../../src/core/config/load.ts'
import RedisStateTool from '../../src/extras/redis-state/index.ts'
import { proxied, runtimeWith } from '../micro/proxied-tool.ts'
import { callers, inWindows, type Loop, type WindowPlan, type WindowSide } from '../windows.ts'

/** Calls in flight at any time, on both sides. */
const IN_FLIGHT = 256
const KEYS = 16

export interface StatePlan extends WindowPlan {
  /** `KV_*` of an empty database. */
  env: Record<string, string>
}

/** Where each side counts. */
const PREFIXES = {
  heddle: 'heddle:state:default:a',
  heddleWindow: 'heddle:state:default:b',
  barePipeline: 'bare:a',
  bareLoops: 'bare:b',
}

/** Measures `state.increment` and bare loops of INCRBY in turn, each side with its own connection. */
export async function measureState(plan: StatePlan) {
  const { settings } = loadSettings({ AUTH_SECRET_KEY: 'x'.repeat(32), ...plan.env })
  const { kvHost: host, kvPort: port, kvPassword: password, kvDb: db } = settings
  const connect = (more: object) => new Redis({ host, port, password, db, ...more })
  const [pipelined, looped, witness] = [connect({}), connect({ enableAutoPipelining: true }), connect({})]
  const tool = new RedisStateTool(runtimeWith({ settings }))
  await tool.boot()
  const state = proxied<State>('state', tool.api())
  const loops = (prefix: string, increment: (key: string) => Promise<unknown>): Loop =>
    callers(IN_FLIGHT, (n) => increment(`${prefix}${n % KEYS}`))
  try {
    const sides = await inWindows(
      {
        /** Through the tool-call proxy. */
        heddle: loops('a', (key) => state.increment(key)),
        /** The same with a time to live, as a rate limit uses it. */
        heddleWindow: loops('b', (key) => state.increment(key, 1, { ttlMs: 3_600_000 })),
        /** A pipeline of as many INCRBY as are in flight, and the next one when all have been answered. */
        barePipeline: pipelines(PREFIXES.barePipeline, pipelined),
        /** Automatic pipelining: as many loops as are in flight. */
        bareLoops: loops(PREFIXES.bareLoops, (key) => looped.incrby(key, 1)),
      },
      plan,
    )
    /** Counters with a wrong sum. The figures are invalid unless it is empty. */
    const faults: string[] = []
    for (const [name, { count }] of Object.entries(sides) as [keyof typeof sides, WindowSide][]) {
      const keys = Array.from({ length: KEYS }, (_, n) => `${PREFIXES[name]}${n}`)
      const counted = (await witness.mget(keys)).reduce((sum, text) => sum + Number(text), 0)
      if (counted !== count) faults.push(`${name}: ${count} calls, ${counted} counted`)
    }
    return { ...sides, faults }
  } finally {
    await tool.stop()
    for (const client of [pipelined, looped, witness]) client.disconnect()
  }
}

function pipelines(prefix: string, redis: Redis): Loop {
  return async (endMs) => {
    let calls = 0
    for (; performance.now() < endMs; calls += IN_FLIGHT) {
      const pipeline = redis.pipeline()
      for (let n = 0; n < IN_FLIGHT; n++) pipeline.incrby(`${prefix}${n % KEYS}`, 1)
      await pipeline.exec()
    }
    return calls
  }
}
