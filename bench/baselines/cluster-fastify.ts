// Fastify in as many processes as the machine has cores, which share the port: how it is run where one core is not enough.
import cluster from 'node:cluster'
import { availableParallelism } from 'node:os'
import { announceReady } from './serve.ts'

if (cluster.isPrimary) {
  // A worker ends with this process by itself.
  const isGuard = (flag: string | undefined): boolean => flag?.endsWith('orphan-guard.cjs') === true
  cluster.setupPrimary({
    execArgv: process.execArgv.filter(
      (flag, n, all) => !isGuard(flag) && !(flag === '--require' && isGuard(all[n + 1])),
    ),
  })
  let listening = 0
  cluster.on('listening', () => {
    if (++listening === availableParallelism()) announceReady()
  })
  for (let n = 0; n < availableParallelism(); n++) cluster.fork()
} else {
  void import('./hello-fastify.ts')
}
