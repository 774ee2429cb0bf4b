// One end of a stream with nothing but ioredis, in a process of its own: `publish` or `consume` as the first argument, orders over IPC.
import { Redis } from 'ioredis'
import { epochMs } from '../domains/bench/tick-count.ts'

export const BARE_STREAM = 'bare:stream'
const GROUP = 'bare'
/** Commands of one pipeline, as the publisher of the runtime awaits so many at a time. */
const PUBLISH_BATCH = 1000
const READ_COUNT = 500
const BLOCK_MS = 1000

export type BareOrder = { run: string; count: number }
export interface BareResult {
  run: string
  startedAtMs: number
  endedAtMs: number
  cpuUs: number
}

type Streams = [string, [string, string[]][]][] | null

const redis = new Redis({
  host: process.env.KV_HOST!,
  port: Number(process.env.KV_PORT),
  password: process.env.KV_PASSWORD!,
  db: Number(process.env.KV_DB ?? 0),
})

async function publish({ run, count }: BareOrder): Promise<void> {
  for (let published = 0; published < count; published += PUBLISH_BATCH) {
    const pipeline = redis.pipeline()
    for (let n = published; n < Math.min(count, published + PUBLISH_BATCH); n++) {
      pipeline.xadd(BARE_STREAM, '*', 'p', JSON.stringify({ run, thread: 1 }))
    }
    await pipeline.exec()
  }
}

async function consume({ run, count }: BareOrder): Promise<void> {
  for (let handled = 0; handled < count; ) {
    const args = ['GROUP', GROUP, 'one', 'COUNT', READ_COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', BARE_STREAM, '>'] as const
    const streams = (await redis.xreadgroup(...args)) as Streams
    const entries = streams?.[0]?.[1] ?? []
    for (const [, fields] of entries) if ((JSON.parse(fields[1]!) as { run: string }).run === run) handled++
    if (entries.length > 0) await redis.xack(BARE_STREAM, GROUP, ...entries.map(([id]) => id))
  }
}

const work = process.argv[2] === 'publish' ? publish : consume
if (work === consume) await redis.xgroup('CREATE', BARE_STREAM, GROUP, '$', 'MKSTREAM')
else await redis.ping()
process.on('message', async (order: BareOrder) => {
  const cpu = process.cpuUsage()
  const startedAtMs = epochMs()
  await work(order)
  const { user, system } = process.cpuUsage(cpu)
  process.send!({ run: order.run, startedAtMs, endedAtMs: epochMs(), cpuUs: user + system } satisfies BareResult)
})
process.on('disconnect', () => process.exit(0))
process.send!('ready')
