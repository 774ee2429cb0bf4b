import { ReplicaLock } from '../../../src/primary/streams/replica-lock.ts'
import { RedisClient } from '../../../src/stores/redis/client.ts'

/** A process that holds a replica's name: `held` when it has it, `refused <message>` when it does not, `lost <pid>` when it loses it. */
const [port, password, replicaId, ttlMs] = process.argv.slice(2)
const redis = new RedisClient(
  {
    kvHost: '127.0.0.1',
    kvPort: Number(port),
    kvDb: 0,
    kvPassword: password!,
    kvConnectTimeout: 5,
    kvTls: 'off',
    kvCaFile: undefined,
    kvUser: undefined,
  },
  { name: 'heddle:test:holder', log: () => {} },
)
const lock = new ReplicaLock(redis, replicaId!, {
  ttlMs: Number(ttlMs),
  renewMs: Number(ttlMs) / 3,
  onLost: ({ pid }) => console.log(`lost ${pid}`),
})
process.on('message', () => lock.release().then(() => process.exit(0)))
try {
  await lock.acquire()
  console.log('held')
} catch (error) {
  console.log(`refused ${(error as Error).message}`)
  process.exit(0)
}
