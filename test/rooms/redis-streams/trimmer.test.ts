import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Trimmer } from '../../../src/primary/redis-streams/trimmer.ts'
import { broadcastGroupOf, consumerOf, RELEASED, streamOf, UP_SINCE } from '../../../src/runtime/redis-streams/keys.ts'
import {
  ensureGroup,
  listConsumers,
  listGroups,
  SCRIPTS,
  touch,
} from '../../../src/runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { addNumbers, deliver, pendingOf, streamStore, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const STREAM = streamOf('order.paid')

interface Options {
  streams?: string[]
  maxLen?: number
  keepMs?: number
}

/** After so long without a sign of life a consumer is gone here. */
const GONE_MS = 300
const UP_LONG_MS = 86_400_000

function trimmerFor(redis: RedisClient, { streams = [STREAM], ...more }: Options = {}) {
  const reports: [message: string, fields: object][] = []
  const log = (_: string, ...report: [string, object]) => void reports.push(report)
  const trimmer = new Trimmer(redis, { streams: () => streams, log, goneMs: GONE_MS, ...more })
  return { trimmer, reports }
}

const groupNames = async (redis: RedisClient) => (await listGroups(redis, STREAM)).map(({ name }) => name).toSorted()
/** The first check after a pause leaves everything as it is. */
const tidyTwice = async (trimmer: Trimmer): Promise<void> => {
  await trimmer.tidy()
  await trimmer.tidy()
}
const drop = (redis: RedisClient, group: string, consumer: string, unseenMs: number) =>
  redis.run<number>(SCRIPTS.dropUnseen, [STREAM], [group, consumer, unseenMs])
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

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

testOnStreams('a consumer with pending entries is never removed, nor one that was seen', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  await addNumbers(redis, STREAM, 10)
  const done = await deliver(redis, STREAM, 'g', 'gone:hub', 2)
  await redis.command('xack', [STREAM, 'g', ...done])
  await deliver(redis, STREAM, 'g', 'lost:hub', 2)
  await pause(GONE_MS)
  await touch(redis, STREAM, 'g', 'living:hub')
  const dropped = ['living:hub', 'gone:hub', 'lost:hub', 'nobody:hub', ''].map((name) =>
    drop(redis, 'g', name, GONE_MS),
  )
  assert.deepEqual(await Promise.all(dropped), [0, 1, 0, 0, 0])
  assert.deepEqual(
    (await listConsumers(redis, STREAM, 'g')).map(({ name, pending }) => [name, pending]),
    [
      ['living:hub', 0],
      ['lost:hub', 2],
    ],
  )
  await assert.rejects(drop(redis, 'missing', 'gone:hub', 0))
  assert.deepEqual(await listConsumers(redis, 'nothing', 'g'), [])
})

testOnStreams(
  'what a replica that is gone had is dropped, but for pending entries and the sight of its groups',
  async (store) => {
    const { redis } = store
    const alone = (replica: string) => broadcastGroupOf('shop.Cache.clear', consumerOf(replica))
    for (const group of ['g', 'left', alone('living'), alone('gone'), 'other@stranger'])
      await ensureGroup(redis, STREAM, group, '$')
    await addNumbers(redis, STREAM, 10)
    for (const group of ['g', 'left'])
      await redis.command('xack', [STREAM, group, ...(await deliver(redis, STREAM, group, 'gone:hub', 2))])
    await deliver(redis, STREAM, 'g', 'lost:hub', 2)
    await touch(redis, STREAM, alone('gone'), consumerOf('gone'))
    await pause(2 * GONE_MS)
    const live = async (): Promise<void> => {
      for (const group of ['g', alone('living')]) await touch(redis, STREAM, group, consumerOf('living'))
    }
    const { trimmer, reports } = trimmerFor(redis)
    const other = trimmerFor(store.connect()).trimmer
    await live()
    await Promise.all([trimmer.tidy(), other.tidy()])
    assert.equal((await groupNames(redis)).length, 5, 'a server that stood still has seen nobody')
    await live()
    await Promise.all([trimmer.tidy(), other.tidy()])
    const names = async (group: string) => (await listConsumers(redis, STREAM, group)).map(({ name }) => name)
    assert.deepEqual(await names('g'), ['living:hub', 'lost:hub'])
    assert.deepEqual(await names('left'), ['gone:hub'])
    assert.deepEqual(await groupNames(redis), ['g', 'left', 'other@stranger', alone('living')].toSorted())
    assert.equal((await pendingOf(redis, STREAM, 'g')).length, 2)
    assert.equal(reports.length, 0)
  },
)

testOnStreams('a group without a subscriber that keeps many entries is told of once', async ({ redis }) => {
  for (const group of ['left', 'few', 'living']) await ensureGroup(redis, STREAM, group, '$')
  await addNumbers(redis, STREAM, 10_001)
  await redis.command('xack', [STREAM, 'few', ...(await deliver(redis, STREAM, 'few', 'c', 9000))])
  const { trimmer, reports } = trimmerFor(redis)
  await tidyTwice(trimmer)
  assert.equal(reports.length, 0)
  const consumers = await listConsumers(redis, STREAM, 'left')
  assert.deepEqual(
    consumers.map(({ name }) => name),
    [RELEASED],
    'its time begins',
  )
  await pause(2 * GONE_MS)
  await touch(redis, STREAM, 'living', 'a:hub')
  await trimmer.tidy()
  await trimmer.tidy()
  const [told, ...more] = reports
  assert.deepEqual(more, [])
  assert.match(told![0], /^10001 entries of heddle:event:\S+ wait for a subscriber no replica has/)
  assert.deepEqual(told![1], { group: 'left', waiting: 10_001 })
})

testOnStreams('a group without a subscriber is destroyed in the end, and one that was seen is not', async (store) => {
  const { redis } = store
  for (const group of ['left', 'living']) await ensureGroup(redis, STREAM, group, '$')
  for (const group of ['left', 'living']) await touch(redis, STREAM, group, 'a:hub')
  await addNumbers(redis, STREAM, 5)
  const { trimmer, reports } = trimmerFor(redis, { keepMs: 2 * GONE_MS })
  await redis.command('set', [UP_SINCE, Date.now() - UP_LONG_MS])
  await tidyTwice(trimmer)
  await pause(3 * GONE_MS)
  await touch(redis, STREAM, 'living', 'a:hub')
  await trimmer.tidy()
  assert.deepEqual(await groupNames(redis), ['living'])
  assert.match(reports[0]![0], /for 7 days was deleted$/)
  assert.deepEqual(reports[0]![1], { group: 'left', waiting: 5 })
})

testOnStreams('a group is kept when no replica ran for long', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'left', '$')
  await touch(redis, STREAM, 'left', 'a:hub')
  await pause(2 * GONE_MS)
  const { trimmer } = trimmerFor(redis, { keepMs: GONE_MS + 1 })
  await redis.command('set', [UP_SINCE, Date.now()])
  await tidyTwice(trimmer)
  assert.deepEqual(await groupNames(redis), ['left'])
  assert.ok((await redis.command<number>('pttl', [UP_SINCE])) > 3 * UP_LONG_MS, 'it is kept while a replica runs')
})

testOnStreams('streams of others are found by a search', async ({ redis }) => {
  await redis.command('xadd', [streamOf('unread'), '1-0', 'n', 1])
  await redis.command('xadd', ['elsewhere', '1-0', 'n', 1])
  const { trimmer, reports } = trimmerFor(redis, { streams: [] })
  await trimmer.tidy()
  await trimmer.trim()
  assert.equal(await redis.command('xlen', [streamOf('unread')]), 0)
  assert.equal(await redis.command('xlen', ['elsewhere']), 1)
  assert.equal(reports.length, 0)
})

testOnStreams('a key of another type is told once and keeps no other stream from being trimmed', async ({ redis }) => {
  const broken = streamOf('broken')
  await redis.command('set', [broken, 'x'])
  await redis.command('xadd', [STREAM, '1-0', 'n', 1])
  const { trimmer, reports } = trimmerFor(redis, { streams: [broken, STREAM] })
  await trimmer.trim()
  await tidyTwice(trimmer)
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
