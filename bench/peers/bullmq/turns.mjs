// How long a job of higher priority waits in BullMQ, behind 100,000 jobs. Its groups, which take turns, are in the Pro version.
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, Worker } from 'bullmq'
import Redis from 'ioredis'

const QUEUE = 'turn'
const JOBS_AT_ONCE = 1000
const BETWEEN_MS = 5
const NOTE = 'x'.repeat(321)

/** @type {import('./plan.ts').MeasureTurns} */
export default async function measureTurns({ access, behind, probes, atATime, turnMs }) {
  const client = new Redis({ ...access, maxRetriesPerRequest: null })
  await client.flushdb()
  const queue = new Queue(QUEUE, { connection: access, defaultJobOptions: { removeOnComplete: true } })
  const begun = new Map()
  const turn = ({ data }) => {
    begun.get(data.n)?.()
    return sleep(turnMs)
  }
  const worker = new Worker(QUEUE, turn, { connection: access, concurrency: atATime })
  await worker.waitUntilReady()
  let last = 0
  const probe = async () => {
    const tookMs = []
    for (let count = 0; count < probes; count++) {
      const n = ++last
      const startMs = performance.now()
      const hasBegun = new Promise((resolve) => begun.set(n, resolve))
      await queue.add('other', { n }, { priority: 1 })
      await hasBegun
      tookMs.push(performance.now() - startMs)
      begun.delete(n)
      await sleep(BETWEEN_MS)
    }
    return tookMs
  }
  await probe()
  const alone = await probe()
  for (let added = 0; added < behind; added += JOBS_AT_ONCE) {
    const length = Math.min(JOBS_AT_ONCE, behind - added)
    await queue.addBulk(Array.from({ length }, () => ({ name: 'large', data: { note: NOTE }, opts: { priority: 2 } })))
  }
  await sleep(1000)
  const turns = { alone, behind: await probe() }
  await worker.close(true)
  await queue.close()
  await client.flushdb()
  client.disconnect()
  return turns
}
