import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GROUP_KEEP_MS, GROUP_UNSEEN_MS, markGroupsSeen, Trimmer } from '../../../src/primary/redis-streams/trimmer.ts'
import {
  broadcastGroupOf,
  consumerOf,
  GROUPS_SEEN,
  replicaKey,
  seenField,
  streamOf,
} from '../../../src/runtime/redis-streams/keys.ts'
import {
  ensureGroup,
  listConsumers,
  listGroups,
  removeConsumer,
} from '../../../src/runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { addNumbers, deliver, pendingOf, streamStore, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const STREAM = streamOf('order.paid')

interface Options {
  streams?: string[]
  maxLen?: number
}

function trimmerFor(redis: RedisClient, { streams = [STREAM], ...more }: Options = {}) {
  const reports: [message: string, fields: object][] = []
  const trimmer = new Trimmer(redis, { streams: () => streams, log: (_, ...report) => reports.push(report), ...more })
  return { trimmer, reports }
}

const groupNames = async (redis: RedisClient) => (await listGroups(redis, STREAM)).map(({ name }) => name).toSorted()
const lives = (redis: RedisClient, replica: string) => redis.command('set', [replicaKey(replica), 'x'])

testOnStreams('a new group begins where it is told to, and one that is there keeps its place', async ({ redis }) => {
  const made = await Promise.all([1, 2, 3].map(() => ensureGroup(redis, STREAM, 'g', '$')))
  assert.deepEqual(made.toSorted(), [false, false, true])
  const ids = await addNumbers(redis, STREAM, 3)
  assert.equal(await ensureGroup(redis, STREAM, 'g', '$'), false)
  assert.equal(await ensureGroup(redis, STREAM, 'late', '$'), true)
  assert.equal(await ensureGroup(redis, STREAM, 'all', '0'), true)
  assert.deepEqual(await deliver(redis, STREAM, 'g', 'c', 10), ids)
  assert.deepEqual(await deliver(redis, STREAM, 'late', 'c', 10), [])
  assert.deepEqual(await deliver(redis, STREAM, 'all', 'c', 10), ids)
  assert.deepEqual(await groupNames(redis), ['all', 'g', 'late'])
  assert.deepEqual(await listGroups(redis, 'nothing'), [])
})

testOnStreams('a consumer with pending entries is never removed, nor one whose replica lives', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  await addNumbers(redis, STREAM, 10)
  await lives(redis, 'living')
  const done = await deliver(redis, STREAM, 'g', 'living:hub', 2)
  done.push(...(await deliver(redis, STREAM, 'g', 'gone:hub', 2)))
  await redis.command('xack', [STREAM, 'g', ...done])
  await deliver(redis, STREAM, 'g', 'lost:hub', 2)
  const removed = await Promise.all(
    ['living:hub', 'gone:hub', 'lost:hub', 'nobody:hub', 'stranger'].map((name) =>
      removeConsumer(redis, STREAM, 'g', name),
    ),
  )
  assert.deepEqual(removed, [false, true, false, false, false])
  const left = await listConsumers(redis, STREAM, 'g')
  assert.deepEqual(left.map(({ name, pending }) => [name, pending]).toSorted(), [
    ['living:hub', 0],
    ['lost:hub', 2],
  ])
  assert.ok(left.every(({ idleMs }) => idleMs >= 0))
  assert.equal(await removeConsumer(redis, STREAM, 'nothing', 'gone:hub'), false)
  assert.deepEqual(await listConsumers(redis, 'nothing', 'g'), [])
})

testOnStreams(
  'the consumers of a replica that is gone are removed after several checks, those with pending entries are not',
  async (store) => {
    const { redis } = store
    const alone = (replica: string) => broadcastGroupOf('shop.Cache.clear', consumerOf(replica))
    await lives(redis, 'living')
    for (const group of ['g', alone('living'), alone('gone'), 'other@stranger']) {
      await ensureGroup(redis, STREAM, group, '$')
    }
    await addNumbers(redis, STREAM, 10)
    const done = await deliver(redis, STREAM, 'g', 'gone:hub', 2)
    await redis.command('xack', [STREAM, 'g', ...done])
    await deliver(redis, STREAM, 'g', 'lost:hub', 2)
    await redis.command('xack', [STREAM, 'g', ...(await deliver(redis, STREAM, 'g', 'living:hub', 2))])
    const { trimmer, reports } = trimmerFor(redis)
    const other = trimmerFor(store.connect()).trimmer
    for (let look = 0; look < 3; look++) await Promise.all([trimmer.tidy(), other.tidy()])
    assert.equal((await listConsumers(redis, STREAM, 'g')).length, 3, 'a server that stood still lets all keys lapse')
    await Promise.all([trimmer.tidy(), other.tidy()])
    assert.deepEqual((await listConsumers(redis, STREAM, 'g')).map(({ name }) => name).toSorted(), [
      'living:hub',
      'lost:hub',
    ])
    assert.deepEqual(await groupNames(redis), ['g', 'other@stranger', alone('living')].toSorted())
    assert.equal((await pendingOf(redis, STREAM, 'g')).length, 2)
    assert.equal(reports.length, 0)
  },
)

testOnStreams('a replica that is back between two checks counts as living', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  await redis.command('xgroup', ['CREATECONSUMER', STREAM, 'g', 'a:hub'])
  const { trimmer } = trimmerFor(redis)
  for (let look = 0; look < 3; look++) await trimmer.tidy()
  await lives(redis, 'a')
  await trimmer.tidy()
  await redis.command('del', [replicaKey('a')])
  for (let look = 0; look < 3; look++) await trimmer.tidy()
  assert.equal((await listConsumers(redis, STREAM, 'g')).length, 1)
  await trimmer.tidy()
  assert.equal((await listConsumers(redis, STREAM, 'g')).length, 0)
})

testOnStreams(
  'a group without a subscriber that keeps many entries is told of once, and destroyed after a week; one that was seen is not',
  async ({ redis }) => {
    await lives(redis, 'a')
    for (const group of ['left', 'few', 'living', 'left@a:hub']) await ensureGroup(redis, STREAM, group, '$')
    await addNumbers(redis, STREAM, 10_001)
    await redis.command('xack', [STREAM, 'few', ...(await deliver(redis, STREAM, 'few', 'c', 9000))])
    const { trimmer, reports } = trimmerFor(redis)
    await trimmer.tidy()
    assert.equal(reports.length, 0)
    const wasSeen = (group: string, agoMs: number) =>
      redis.command('hset', [GROUPS_SEEN, seenField(STREAM, group), Date.now() - agoMs])
    await wasSeen('left', GROUP_UNSEEN_MS + 60_000)
    await wasSeen('few', GROUP_UNSEEN_MS + 60_000)
    await trimmer.tidy()
    await trimmer.tidy()
    await trimmer.trim()
    const left = { group: 'left', waiting: 10_001 }
    assert.deepEqual(
      reports.map(([, fields]) => fields),
      [left],
    )
    assert.match(reports[0]![0], /^10001 entries of heddle:event:\S+ wait for a subscriber no replica has/)
    for (const group of ['left', 'living', 'left@a:hub']) await wasSeen(group, GROUP_KEEP_MS + 60_000)
    await markGroupsSeen(redis, [{ stream: STREAM, group: 'living' }])
    await markGroupsSeen(redis, [])
    await trimmer.tidy()
    assert.equal(reports.length, 2)
    assert.match(reports[1]![0], /for 7 days was deleted$/)
    assert.deepEqual(reports[1]![1], left)
    assert.deepEqual(await groupNames(redis), ['few', 'left@a:hub', 'living'])
    assert.equal(await redis.command('hexists', [GROUPS_SEEN, seenField(STREAM, 'left')]), 0)
    for (const group of ['living', 'left@a:hub']) await redis.command('xgroup', ['DESTROY', STREAM, group])
    await trimmer.trim()
    assert.equal(await redis.command('xlen', [STREAM]), 1001)
  },
)

testOnStreams('streams of others are found: those with groups by them, the rest by a search', async ({ redis }) => {
  await redis.command('xadd', [streamOf('unread'), '1-0', 'n', 1])
  await redis.command('xadd', ['elsewhere', '1-0', 'n', 1])
  const { trimmer, reports } = trimmerFor(redis, { streams: [] })
  await trimmer.tidy()
  await trimmer.trim()
  assert.equal(await redis.command('xlen', [streamOf('unread')]), 0)
  await ensureGroup(redis, STREAM, 'g', '$')
  await markGroupsSeen(redis, [{ stream: STREAM, group: 'g' }])
  await addNumbers(redis, STREAM, 5)
  await redis.command('xack', [STREAM, 'g', ...(await deliver(redis, STREAM, 'g', 'c', 5))])
  await trimmer.tidy()
  await trimmer.trim()
  assert.equal(await redis.command('xlen', [STREAM]), 0)
  assert.equal(await redis.command('xlen', ['elsewhere']), 1)
  assert.equal(reports.length, 0)
})

testOnStreams('a key of another type is told once and keeps no other stream from being trimmed', async ({ redis }) => {
  const broken = streamOf('broken')
  await redis.command('set', [broken, 'x'])
  await redis.command('xadd', [STREAM, '1-0', 'n', 1])
  const { trimmer, reports } = trimmerFor(redis, { streams: [broken, STREAM] })
  await trimmer.trim()
  await trimmer.tidy()
  await trimmer.trim()
  assert.equal(await redis.command('xlen', [STREAM]), 0)
  assert.equal(reports.length, 1)
  assert.match(reports[0]![0], /^heddle:event:broken cannot be trimmed or checked: .*delete it/)
})

test('a started trimmer trims by itself, reports what a cap costs, and goes on after a loss of the server', async (t) => {
  const store = await streamStore(t, ['--appendonly', 'yes', '--appendfsync', 'always'])
  if (store === null) return
  const { redis, server } = store
  const { trimmer, reports } = trimmerFor(redis, { maxLen: 100 })
  await ensureGroup(redis, STREAM, 'g', '$')
  await addNumbers(redis, STREAM, 50)
  await redis.command('xack', [STREAM, 'g', ...(await deliver(redis, STREAM, 'g', 'c', 50))])
  trimmer.start()
  t.after(() => trimmer.stop())
  await until(async () => (await redis.command('xlen', [STREAM])) === 0, 'it is trimmed')
  await server.stop()
  await until(() => !redis.isReady, 'the loss is noticed')
  await server.start()
  await until(() => redis.isReady, 'the connection is back')
  await addNumbers(redis, STREAM, 150)
  await until(() => reports.length > 0, 'the cap is told')
  assert.deepEqual(
    reports.map(([, fields]) => fields),
    [{ group: 'g', missed: 50, in_hand: 0 }],
  )
})
