import assert from 'node:assert/strict'
import { handOver, releaseEntries, renewLeases } from '../../../src/primary/streams/hub-streams.ts'
import { ensureGroup } from '../../../src/runtime/streams/consumers.ts'
import { streamOf } from '../../../src/runtime/streams/keys.ts'
import { until } from '../../support/until.ts'
import { addNumbers, deliver, pendingOf, testOnStreams } from './fixture.ts'

const STREAM = streamOf('order.paid')
const claim = (consumer: string, minIdleMs: number) => [STREAM, 'g', consumer, minIdleMs, '0-0', 'COUNT', 1000]

testOnStreams(
  'a lease renews all pending entries of the given consumers, beyond one chunk, and counts no delivery',
  async ({ redis }) => {
    await ensureGroup(redis, STREAM, 'g', '$')
    await addNumbers(redis, STREAM, 2600)
    await deliver(redis, STREAM, 'g', 'a:0', 1200)
    await deliver(redis, STREAM, 'g', 'a:1', 1300)
    await deliver(redis, STREAM, 'g', 'b:0', 100)
    await until(async () => (await pendingOf(redis, STREAM, 'g')).every(({ idleMs }) => idleMs >= 300), 'they are idle')
    assert.deepEqual(await renewLeases(redis, STREAM, 'g', ['a:0', 'a:1', 'nobody'], 300), { renewed: 2500, cut: 0 })
    const pending = await pendingOf(redis, STREAM, 'g')
    assert.ok(pending.every(({ deliveries }) => deliveries === 1))
    const youngestOfOther = Math.min(
      ...pending.filter(({ consumer }) => consumer === 'b:0').map(({ idleMs }) => idleMs),
    )
    const oldest = Math.max(...pending.filter(({ consumer }) => consumer !== 'b:0').map(({ idleMs }) => idleMs))
    assert.ok(oldest < youngestOfOther, `${oldest} ${youngestOfOther}`)
  },
)

testOnStreams('entries that are not idle for long enough are left as they are', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  await addNumbers(redis, STREAM, 10)
  await deliver(redis, STREAM, 'g', 'a:0', 10)
  assert.deepEqual(await renewLeases(redis, STREAM, 'g', ['a:0'], 3_600_000), { renewed: 0, cut: 0 })
})

testOnStreams('an entry that another consumer has claimed stays there', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  const ids = await addNumbers(redis, STREAM, 3)
  await deliver(redis, STREAM, 'g', 'a:0', 3)
  await redis.command('xclaim', [STREAM, 'g', 'b:0', 0, ids[1]!])
  await renewLeases(redis, STREAM, 'g', ['a:0'], 0)
  assert.deepEqual(await releaseEntries(redis, { stream: STREAM, group: 'g', ids: ids }, 'a:0'), [ids[0], ids[2]])
  assert.deepEqual(await handOver(redis, { stream: STREAM, group: 'g', ids: ids }, { from: 'a:0', to: 'a:hub' }), [
    ids[0],
    ids[2],
  ])
  const owners = (await pendingOf(redis, STREAM, 'g')).map(({ consumer }) => consumer)
  assert.deepEqual(owners, ['a:hub', 'b:0', 'a:hub'])
})

testOnStreams('released entries are claimed at once', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  const ids = await addNumbers(redis, STREAM, 1300)
  await deliver(redis, STREAM, 'g', 'a:0', 1300)
  assert.deepEqual(await releaseEntries(redis, { stream: STREAM, group: 'g', ids: [] }, 'a:0'), [])
  assert.deepEqual(
    await releaseEntries(redis, { stream: STREAM, group: 'g', ids: ids.slice(0, 5) }, 'a:0'),
    ids.slice(0, 5),
  )
  const [, first] = await redis.command<[string, unknown[]]>('xautoclaim', claim('b:0', 60_000))
  assert.equal(first.length, 5)
  assert.deepEqual(await releaseEntries(redis, { stream: STREAM, group: 'g', ids: 'all' }, 'a:0'), ids.slice(5))
  assert.equal((await releaseEntries(redis, { stream: STREAM, group: 'g', ids: 'all' }, 'b:0')).length, 5)
  await redis.command('xack', [STREAM, 'g', ...ids.slice(0, 300)])
  const [, second] = await redis.command<[string, unknown[]]>('xautoclaim', claim('b:0', 60_000))
  assert.equal(second.length, 1000)
})

testOnStreams('an entry that is handed over is not idle and keeps its count of deliveries', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  await addNumbers(redis, STREAM, 2)
  const ids = await deliver(redis, STREAM, 'g', 'a:0', 2)
  await redis.command('xclaim', [STREAM, 'g', 'a:0', 0, ids[0]!])
  await redis.command('xack', [STREAM, 'g', ids[1]!])
  assert.deepEqual(await handOver(redis, { stream: STREAM, group: 'g', ids: ids }, { from: 'a:0', to: 'a:hub' }), [
    ids[0],
  ])
  assert.deepEqual(
    (await pendingOf(redis, STREAM, 'g')).map(({ consumer, deliveries }) => [consumer, deliveries]),
    [['a:hub', 2]],
  )
})

testOnStreams('entries that were cut from the stream are counted, and nothing hangs', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  await addNumbers(redis, STREAM, 700)
  await deliver(redis, STREAM, 'g', 'a:0', 700)
  await redis.command('xtrim', [STREAM, 'MAXLEN', 100])
  await until(async () => (await pendingOf(redis, STREAM, 'g')).every(({ idleMs }) => idleMs >= 1), 'they are idle')
  assert.deepEqual(await renewLeases(redis, STREAM, 'g', ['a:0'], 0), { renewed: 100, cut: 600 })
})

testOnStreams('eight claimers and a renewal at once: each of 10,000 entries has one owner', async (store) => {
  const { redis } = store
  await ensureGroup(redis, STREAM, 'g', '$')
  await addNumbers(redis, STREAM, 10_000)
  const ids = await deliver(redis, STREAM, 'g', 'dead:0', 10_000)
  await releaseEntries(redis, { stream: STREAM, group: 'g', ids: 'all' }, 'dead:0')
  const claimers = await Promise.all(Array.from({ length: 8 }, () => store.connect()))
  const claimed = await Promise.all(
    claimers.map(async (claimer, index) => {
      const mine: string[] = []
      let cursor = '0-0'
      do {
        const [next, entries] = await claimer.command<[string, [string, string[]][]]>('xautoclaim', [
          STREAM,
          'g',
          `b:${index}`,
          60_000,
          cursor,
          'COUNT',
          37,
        ])
        cursor = next
        mine.push(...entries.map(([id]) => id))
        await renewLeases(redis, STREAM, 'g', [`b:${index}`], 1)
        const given = entries.slice(0, 5).map(([id]) => id)
        await handOver(
          redis,
          { stream: STREAM, group: 'g', ids: given },
          { from: `b:${index}`, to: `b:${(index + 1) % 8}` },
        )
      } while (cursor !== '0-0')
      return mine
    }),
  )
  assert.deepEqual(claimed.flat().toSorted(), ids.toSorted())
  assert.equal((await pendingOf(redis, STREAM, 'g')).length, 10_000)
})

testOnStreams('a wiped server has nothing to renew, to release or to hand over', async ({ redis }) => {
  assert.deepEqual(await renewLeases(redis, STREAM, 'g', ['a:0'], 1), { renewed: 0, cut: 0 })
  assert.deepEqual(await releaseEntries(redis, { stream: STREAM, group: 'g', ids: 'all' }, 'a:0'), [])
  assert.deepEqual(await handOver(redis, { stream: STREAM, group: 'g', ids: ['1-0'] }, { from: 'a:0', to: 'b:0' }), [])
})
