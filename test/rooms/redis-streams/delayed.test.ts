// What an earlier checkout has left in Redis outside of the streams.
import assert from 'node:assert/strict'

import { releaseDelayed, Trimmer } from '../../../src/primary/redis-streams/trimmer.ts'
import { streamOf } from '../../../src/runtime/redis-streams/keys.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { entriesIn, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const STREAM = streamOf('order.paid')
const DELAYED = 'heddle:delayed'
const DUE_MS = 1
const LATER_MS = 9_000_000_000_000

const DELAY = "return redis.call('ZADD', KEYS[1], ARGV[1], cmsgpack.pack({ unpack(ARGV, 2) }))"
const delay = (redis: RedisClient, dueMs: number, n: number, stream = STREAM): Promise<unknown> =>
  redis.command('eval', [DELAY, 1, DELAYED, dueMs, `evt_${n}`, stream, '', 'e', `{"id":"evt_${n}"}`, 'p', `{"n":${n}}`])

const payloads = async (redis: RedisClient) => (await entriesIn(redis, STREAM)).map(({ fields }) => fields.p)
const numbers = (from: number, count: number) => Array.from({ length: count }, (_, n) => `{"n":${from + n}}`)

testOnStreams('an earlier checkout: what is due goes into its stream once, and the rest waits', async (store) => {
  const { redis } = store
  for (let n = 0; n < 100; n++) await delay(redis, DUE_MS + n, n)
  await delay(redis, LATER_MS, 100)
  const other = store.connect()
  await Promise.all([releaseDelayed(redis), releaseDelayed(other)])
  assert.deepEqual(await payloads(redis), numbers(0, 100))
  assert.equal(await redis.command('zcard', [DELAYED]), 1)
})

testOnStreams(
  'an earlier checkout: a member that cannot be moved is put off, and holds up no other',
  async ({ redis }) => {
    await redis.command('set', [streamOf('broken'), 'x'])
    await delay(redis, DUE_MS, 0, streamOf('broken'))
    for (let n = 0; n < 50; n++) await redis.command('zadd', [DELAYED, DUE_MS, `strange ${n}`])
    await delay(redis, DUE_MS + 1, 1)
    await releaseDelayed(redis)
    await releaseDelayed(redis)
    assert.deepEqual(await payloads(redis), numbers(1, 1))
    assert.equal(await redis.command('zcard', [DELAYED]), 51)
  },
)

testOnStreams('an earlier checkout: a process moves what is due, and what is added later', async ({ redis }, t) => {
  // Without a group the trimmer would take what is moved.
  await redis.command('xgroup', ['CREATE', STREAM, 'shop.SendBill.onPaid', '$', 'MKSTREAM'])
  await delay(redis, DUE_MS, 0)
  const trimmer = new Trimmer(redis, { streams: () => [STREAM], log: (_, message) => assert.fail(message) })
  trimmer.start()
  t.after(() => trimmer.stop())
  await until(async () => (await payloads(redis)).length === 1, 'the first event')
  await delay(redis, DUE_MS, 1)
  await until(async () => (await payloads(redis)).length === 2, 'the second event')
  assert.deepEqual(await payloads(redis), numbers(0, 2))
})
