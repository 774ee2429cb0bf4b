// CPU of a job of BullMQ: plain, and with a limiter and a priority.
import { Queue, Worker } from 'bullmq'
import Redis from 'ioredis'

const CALLERS = 64
const WORKERS = 100
const WARMUP_JOBS = 500
/** So high that it holds up nothing, as heddle's. */
const LIMITER = { max: 1_000_000, duration: 1000 }
const NOTE = 'x'.repeat(321)

/** @type {import('./plan.ts').MeasureCosts} */
export default async function measureCosts({ access, jobs }) {
  const client = new Redis({ ...access, maxRetriesPerRequest: null })
  try {
    await client.flushdb()
    return { plain: await costOf(client, access, jobs, false), used: await costOf(client, access, jobs, true) }
  } finally {
    client.disconnect()
  }
}

async function costOf(client, access, jobs, isUsed) {
  const name = isUsed ? 'used' : 'plain'
  const queue = new Queue(name, { connection: access, defaultJobOptions: { removeOnComplete: true } })
  let handled = 0
  const count = async () => {
    handled++
  }
  const worker = new Worker(name, count, {
    connection: access,
    concurrency: WORKERS,
    ...(isUsed ? { limiter: LIMITER } : {}),
  })
  try {
    await worker.waitUntilReady()
    const run = async (number) => {
      handled = 0
      let added = 0
      const caller = async () => {
        while (added < number) {
          const n = added++
          const data = { run: 'round-1', tenant: `tenant-${n % 100}`, note: NOTE }
          await queue.add('tick', data, isUsed ? { priority: 1 + (n % 3) } : {})
        }
      }
      await Promise.all(Array.from({ length: CALLERS }, caller))
      while (handled < number) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    await run(WARMUP_JOBS)
    const clocks = async () => {
      const { user, system } = process.cpuUsage()
      return { ownUs: user + system, serverUs: await serverCpuUs(client) }
    }
    const before = await clocks()
    await run(jobs)
    const after = await clocks()
    return { ownUs: (after.ownUs - before.ownUs) / jobs, serverUs: (after.serverUs - before.serverUs) / jobs }
  } finally {
    await worker.close(true)
    await queue.close()
  }
}

async function serverCpuUs(client) {
  const info = await client.info('cpu')
  const seconds = ['used_cpu_sys', 'used_cpu_user'].map((name) =>
    Number(new RegExp(`^${name}:(.*)$`, 'm').exec(info)[1]),
  )
  return (seconds[0] + seconds[1]) * 1e6
}
