// The progress of 1,000 active jobs of BullMQ, heard by the listeners of one QueueEvents.
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue, QueueEvents, Worker } from 'bullmq'
import Redis from 'ioredis'

const QUEUE = 'followed'
const SETTLE_MS = 3000

/** @type {import('./plan.ts').MeasureFollowers} */
export default async function measureFollowers({ access, followed, measureMs, probes }) {
  const client = new Redis({ ...access, maxRetriesPerRequest: null })
  await client.flushdb()
  const queue = new Queue(QUEUE, { connection: access })
  const running = new Map()
  let end = () => {}
  const isOver = new Promise((resolve) => {
    end = resolve
  })
  const handle = (job) => {
    running.set(job.id, job)
    return isOver
  }
  const worker = new Worker(QUEUE, handle, { connection: access, concurrency: followed })
  const events = new QueueEvents(QUEUE, { connection: access })
  worker.on('error', () => {})
  events.on('error', () => {})
  const listeners = new Map()
  events.on('progress', ({ jobId, data }) => listeners.get(jobId)?.(Date.now() - data))
  await Promise.all([worker.waitUntilReady(), events.waitUntilReady()])
  await queue.addBulk(Array.from({ length: followed }, () => ({ name: 'followed', data: {} })))
  while (running.size < followed) await sleep(10)
  await sleep(SETTLE_MS)
  const before = process.cpuUsage()
  const startMs = performance.now()
  await sleep(measureMs)
  const { user, system } = process.cpuUsage(before)
  const idlePercent = (user + system) / 10 / (performance.now() - startMs)
  const report = async (job) => {
    const isHeard = new Promise((resolve) => listeners.set(job.id, resolve))
    await job.updateProgress(Date.now())
    return isHeard
  }
  const jobs = [...running.values()]
  const reports = []
  for (let probe = 0; probe < probes; probe++) {
    reports.push(await report(jobs[(probe * 7) % followed]))
    await sleep(20)
  }
  const allMs = Math.max(...(await Promise.all(jobs.map(report))))
  end()
  await worker.close()
  await events.close()
  await queue.close()
  await client.flushdb()
  client.disconnect()
  return { idlePercent, reports, allMs }
}
