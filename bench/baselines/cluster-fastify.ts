// Fastify in as many processes as the machine has cores, which share the port: how it is run where one core is not enough.
import cluster from 'node:cluster'
import { availableParallelism } from 'node:os'
import { announceReady } from './serve.ts'

if (cluster.isPrimary) {
  let listening = 0
  cluster.on('listening', () => {
    if (++listening === availableParallelism()) announceReady()
  })
  for (let n = 0; n < availableParallelism(); n++) cluster.fork()
} else {
  void import('./hello-fastify.ts')
}
