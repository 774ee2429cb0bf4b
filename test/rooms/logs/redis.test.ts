import { Redis } from 'ioredis'
import { logContract } from '../../contracts/log.ts'
import { benchOn } from '../../contracts/log-bench.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'

/** Entries that a group has not had, or has not acknowledged, events for later, and what waits behind dead letters. */
async function unfinished(redis: Redis): Promise<number> {
  let count = await redis.zcard('heddle:delayed')
  for (const places of await redis.keys('heddle:places:*')) count += await redis.hlen(places)
  for (const aside of await redis.keys('heddle:aside:*')) count += await redis.llen(aside)
  for (const stream of await redis.keys('heddle:event:*')) {
    for (const group of (await redis.xinfo('GROUPS', stream)) as unknown[][]) {
      const field = (name: string): unknown => group[group.indexOf(name) + 1]
      const fresh = await redis.xrange(stream, `(${field('last-delivered-id')}`, '+')
      count += Number(field('pending')) + fresh.length
    }
  }
  return count
}

logContract('Redis', (owner) =>
  benchOn(owner, async (of, hasOwnServer) => {
    const args = hasOwnServer ? ['--appendonly', 'yes', '--appendfsync', 'always'] : []
    const server = await redisServer({ ...of, skip: () => {} }, { own: true, args })
    if (server === null) return null
    const { host, port, password } = server
    const redis = new Redis({ host, port, password })
    redis.on('error', () => {})
    of.after(async () => redis.disconnect())
    return {
      env: { ...server.env, EVENT_BUS_DRIVER: 'keyvalue_streams', EVENT_BUS_CLAIM_IDLE_MS: '1000' },
      left: () => unfinished(redis),
      together: async (count) => {
        await until(async () => (await redis.keys('heddle:replica:*')).length >= count, `${count} processes`, 60_000)
      },
      server: hasOwnServer
        ? {
            stop: () => server.stop('SIGKILL'),
            start: () => server.start(),
            freeze: () => server.freeze(),
            thaw: () => server.thaw(),
          }
        : null,
    }
  }),
)
