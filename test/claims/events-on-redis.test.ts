import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { logContract } from '../contracts/log.ts'
import { REDIS_ALONE } from '../contracts/log-kinds.ts'
import { runBusContract } from '../rooms/events/bus-contract.ts'
import { startHeddle } from '../support/heddle.ts'
import { connect, settingsOf } from '../support/redis-under-test.ts'
import { redisServer } from '../support/servers/redis.ts'

logContract(REDIS_ALONE, 'shared')

runBusContract(
  'streams of a key-value store',
  async (t) => {
    const redis = await redisServer(t)
    return redis === null ? null : { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
  },
  { keepsReplays: false },
)

test('a process that serves has the groups of all its subscribers, those of the primary among them', async (t) => {
  const server = await redisServer(t)
  if (server === null) return
  const env = { ...server.env, EVENT_BUS_DRIVER: 'keyvalue_streams' }
  const domains = [fileURLToPath(new URL('../fixtures/events', import.meta.url))]
  await startHeddle(t, { domains, lanes: 1, env })
  const redis = connect(t, settingsOf(server))
  const groups = await redis.command<string[][]>('xinfo', ['GROUPS', 'heddle:event:plain'])
  assert.deepEqual(groups.map((fields) => fields[fields.indexOf('name') + 1]).sort(), [
    'bus.DrivePrimary.onPlain',
    'bus.Watch.onPlain',
    'bus.WatchToo.anonymous',
  ])
})
