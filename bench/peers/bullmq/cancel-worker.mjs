// The worker of cancels.mjs.
import { once } from 'node:events'
import { Relay, UnrecoverableError, Worker } from 'bullmq'

const connection = JSON.parse(process.argv[2])
const long = async ({ id }, _token, signal) => {
  process.send({ id })
  if (!signal.aborted) await once(signal, 'abort')
  process.send({ atMs: Date.now() })
  throw new UnrecoverableError('cancelled')
}
const worker = new Worker('long', long, { connection })
worker.on('error', () => {})
await worker.waitUntilReady()
const relay = new Relay({ connection })
await relay.subscribe('jobs.long.cancel', ({ data }) => {
  worker.cancelJob(data.id)
})
process.on('disconnect', () => process.exit())
process.send('ready')
