// How long BullMQ takes to cancel a job of a worker in another process: cancelJob reaches its own process alone, so a Relay carries it there.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Queue, Relay } from 'bullmq'

/** @type {import('./plan.ts').MeasureCancels} */
export default async function measureCancels({ access, probes }) {
  const child = fork(fileURLToPath(new URL('cancel-worker.mjs', import.meta.url)), [JSON.stringify(access)])
  // Its messages come in turn: ready, then begun and aborted of each job.
  const next = async () => (await once(child, 'message'))[0]
  await next()
  const queue = new Queue('long', { connection: access })
  const relay = new Relay({ connection: access })
  const tookMs = []
  for (let probe = 0; probe < probes; probe++) {
    const hasBegun = next()
    await queue.add('long', {})
    const { id } = await hasBegun
    const isAborted = next()
    const askedAtMs = Date.now()
    await relay.publish('jobs.long.cancel', { id })
    tookMs.push((await isAborted).atMs - askedAtMs)
  }
  await relay.close()
  await queue.close()
  child.kill()
  await once(child, 'exit')
  return tookMs
}
