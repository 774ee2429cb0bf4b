// One end of a stream with ioredis alone, in a separate process: the first argument is `publish` or `consume`, commands come over IPC.
// Its entries have the same fields as those of the runtime, because an event without its id, cause and time is a smaller message.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { epochMs } from '../domains/bench/tick-count.ts'

export const BARE_STREAM = 'bare:stream'
const GROUP = 'bare'
/** Commands of one pipeline: as many as the runtime's publisher awaits at a time. */
const PUBLISH_BATCH = 1000
const READ_COUNT = 500
const BLOCK_MS = 1000
const REQUEST_ID = randomUUID()

export type BareOrder = { run: string; count: number }
export interface BareResult {
  startedAtMs: number
  endedAtMs: number
}

type Streams = [string, [string, string[]][]][] | null

const redis = new Redis({
  host: process.env.KV_HOST!,
  port: Number(process.env.KV_PORT),
  password: process.env.KV_PASSWORD!,
  db: Number(process.env.KV_DB ?? 0),
})

function envelope(): object {
  return {
    id: `evt_${randomUUID().replaceAll('-', '')}`,
    parent_id: null,
    emitter: 'bench.DriveTicks',
    request_id: REQUEST_ID,
    timestamp: Date.now(),
    payload_keys: ['run', 'thread'],
    replica: 'replica-a',
  }
}

async function publish({ run, count }: BareOrder): Promise<void> {
  for (let published = 0; published < count; published += PUBLISH_BATCH) {
    const pipeline = redis.pipeline()
    for (let n = published; n < Math.min(count, published + PUBLISH_BATCH); n++) {
      pipeline.xadd(BARE_STREAM, '*', 'e', JSON.stringify(envelope()), 'p', JSON.stringify({ run, thread: 1 }))
    }
    await pipeline.exec()
  }
}

async function consume({ run, count }: BareOrder): Promise<void> {
  for (let handled = 0; handled < count; ) {
    const args = ['GROUP', GROUP, 'one', 'COUNT', READ_COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', BARE_STREAM, '>'] as const
    const streams = (await redis.xreadgroup(...args)) as Streams
    const entries = streams?.[0]?.[1] ?? []
    for (const [, fields] of entries) {
      const { id } = JSON.parse(fields[1]!) as { id: string }
      if ((JSON.parse(fields[3]!) as { run: string }).run === run && id !== '') handled++
    }
    if (entries.length > 0) await redis.xack(BARE_STREAM, GROUP, ...entries.map(([id]) => id))
  }
}

const work = process.argv[2] === 'publish' ? publish : consume
if (work === consume) await redis.xgroup('CREATE', BARE_STREAM, GROUP, '$', 'MKSTREAM')
else await redis.ping()
process.on('message', async (order: BareOrder) => {
  const startedAtMs = epochMs()
  await work(order)
  process.send!({ startedAtMs, endedAtMs: epochMs() } satisfies BareResult)
})
process.on('disconnect', () => process.exit(0))
process.send!('ready')
