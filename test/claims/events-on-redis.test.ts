import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { RedisClient } from '../../src/stores/redis/client.ts'
import { logContract } from '../contracts/log.ts'
import { REDIS } from '../contracts/log-kinds.ts'
import { runBusContract } from '../rooms/events/bus-contract.ts'
import { IN_THE_CLEAR } from '../rooms/streams/fixture.ts'
import { startHeddle } from '../support/heddle.ts'
import { redisServer } from '../support/servers/redis.ts'

logContract(REDIS, 'shared')

runBusContract('streams of a key-value store', async (t) => {
  const redis = await redisServer(t)
  return redis === null ? null : { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
})

test('a process that serves has the groups of all its subscribers, those of the primary among them', async (t) => {
  const server = await redisServer(t)
  if (server === null) return
  const env = { ...server.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
  const domains = [fileURLToPath(new URL('../fixtures/events', import.meta.url))]
  await startHeddle(t, { domains, lanes: 1, env })
  const { KV_HOST, KV_PORT, KV_PASSWORD, KV_DB } = server.env
  const kv = { kvHost: KV_HOST!, kvPort: Number(KV_PORT), kvPassword: KV_PASSWORD!, kvDb: Number(KV_DB ?? 0) }
  const redis = new RedisClient({ ...kv, ...IN_THE_CLEAR, kvConnectTimeout: 5 }, { name: 'test', log: () => {} })
  t.after(() => redis.close())
  const groups = await redis.command<string[][]>('xinfo', ['GROUPS', 'heddle:event:plain'])
  assert.deepEqual(groups.map((fields) => fields[fields.indexOf('name') + 1]).sort(), [
    'bus.DrivePrimary.onPlain',
    'bus.Watch.onPlain',
    'bus.WatchToo.anonymous',
  ])
})
