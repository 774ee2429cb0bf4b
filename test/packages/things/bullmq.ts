import { Queue, QueueEvents, Worker } from 'bullmq'

export default (get: (name: string) => string) => {
  const connection = { url: get('TRIAL_REDIS'), maxRetriesPerRequest: null }
  const queue = new Queue('looms', { connection })
  const events = new QueueEvents('looms', { connection })
  const worker = new Worker('looms', async ({ data }) => data.n + 1, {
    connection,
    lockDuration: 2_000,
    stalledInterval: 1_000,
    maxStalledCount: 9,
  })
  for (const each of [queue, events, worker]) each.on('error', () => {})
  return async () => {
    const job = await queue.add('weave', { n: 1 }, { removeOnComplete: 100, attempts: 3 })
    return job.waitUntilFinished(events, 20_000)
  }
}
