// What an older release has left in Redis outside of the streams.
import assert from 'node:assert/strict'
import { releaseAside, releaseDelayed } from '../../../src/primary/redis-streams/older-release.ts'
import { Trimmer } from '../../../src/primary/redis-streams/trimmer.ts'
import { streamOf } from '../../../src/runtime/redis-streams/keys.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { entriesIn, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const EVENT = 'order.paid'
const STREAM = streamOf(EVENT)
const DELAYED = 'heddle:delayed'
const PLACES = `heddle:places:${EVENT}`
const DUE_MS = 1
const LATER_MS = 9_000_000_000_000

const DELAY = "return redis.call('ZADD', KEYS[1], ARGV[1], cmsgpack.pack({ unpack(ARGV, 2) }))"
const delay = (redis: RedisClient, dueMs: number, n: number, stream = STREAM): Promise<unknown> =>
  redis.command('eval', [DELAY, 1, DELAYED, dueMs, `evt_${n}`, stream, '', 'e', `{"id":"evt_${n}"}`, 'p', `{"n":${n}}`])

const ASIDE = "redis.call('RPUSH', KEYS[1], cmsgpack.pack({ unpack(ARGV, 1) }))"
const setAside = async (redis: RedisClient, key: string, n: number): Promise<void> => {
  const place = JSON.stringify(['shop.SendBill.onPaid', key])
  await redis.command('eval', [ASIDE, 1, `heddle:aside:${EVENT} ${place}`, 'e', '{}', 'p', `{"n":${n}}`])
  await redis.command('hset', [PLACES, place, 'L1-0'])
}

const payloads = async (redis: RedisClient) => (await entriesIn(redis, STREAM)).map(({ fields }) => fields.p)
const numbers = (from: number, count: number) => Array.from({ length: count }, (_, n) => `{"n":${from + n}}`)

testOnStreams('an older release: what is due goes into its stream once, and the rest waits', async (store) => {
  const { redis } = store
  for (let n = 0; n < 100; n++) await delay(redis, DUE_MS + n, n)
  await delay(redis, LATER_MS, 100)
  const other = store.connect()
  await Promise.all([releaseDelayed(redis), releaseDelayed(other)])
  assert.deepEqual(await payloads(redis), numbers(0, 100))
  assert.equal(await redis.command('zcard', [DELAYED]), 1)
})

testOnStreams(
  'an older release: a member that cannot be moved is put off, and holds up no other',
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

testOnStreams(
  'an older release: what waited behind dead letters goes on in its order, for its group alone',
  async (store) => {
    const { redis } = store
    for (let n = 0; n < 50; n++) await setAside(redis, 'a', n)
    await setAside(redis, 'b', 50)
    await Promise.all([releaseAside(redis, STREAM), releaseAside(store.connect(), STREAM)])
    const entries = await entriesIn(redis, STREAM)
    assert.equal(entries.length, 51)
    const inA = entries.map(({ fields }) => fields.p!).filter((payload) => payload !== '{"n":50}')
    assert.deepEqual(inA, numbers(0, 50))
    for (const { fields } of entries) assert.equal(fields.o, 'shop.SendBill.onPaid')
    assert.equal(await redis.command('exists', [PLACES]), 0)
    assert.deepEqual(await redis.command('keys', ['heddle:aside:*']), [])
  },
)

testOnStreams('an older release: keys that hold something else are left alone', async ({ redis }) => {
  await redis.command('hset', [PLACES, 'none', 'x', '["g","k"]', 'x'])
  await redis.command('set', [`heddle:aside:${EVENT} ["g","k"]`, 'x'])
  await releaseAside(redis, STREAM)
  await releaseDelayed(redis)
  assert.deepEqual(await redis.command('keys', ['heddle:event:*']), [])
})

testOnStreams('an older release: a process moves what there is, and what is added later', async ({ redis }, t) => {
  // Without a group the trimmer would take what is moved.
  await redis.command('xgroup', ['CREATE', STREAM, 'shop.SendBill.onPaid', '$', 'MKSTREAM'])
  await setAside(redis, 'a', 0)
  const trimmer = new Trimmer(redis, { streams: () => [STREAM], log: (_, message) => assert.fail(message) })
  trimmer.start()
  t.after(() => trimmer.stop())
  await until(async () => (await payloads(redis)).length === 1, 'the event that waited')
  await delay(redis, DUE_MS, 1)
  await until(async () => (await payloads(redis)).length === 2, 'the delayed event')
  assert.deepEqual(await payloads(redis), numbers(0, 2))
})
