import assert from 'node:assert/strict'
import { trimStream } from '../../../src/primary/redis-streams/trimmer.ts'
import { streamOf } from '../../../src/runtime/redis-streams/keys.ts'
import { ensureGroup, SCRIPTS } from '../../../src/runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { addNumbers, deliver, entriesIn, pendingOf, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const STREAM = streamOf('order.paid')

/** @returns the number of entries that are gone, and the losses */
async function trim(redis: RedisClient, maxLen?: number) {
  const length = () => redis.command<number>('xlen', [STREAM])
  const before = await length()
  const losses = await trimStream(redis, STREAM, maxLen)
  return { gone: before - (await length()), losses }
}

testOnStreams('a stream is trimmed up to what the slowest group needs', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'fast', '$')
  await ensureGroup(redis, STREAM, 'slow', '$')
  const ids = await addNumbers(redis, STREAM, 1000)
  await redis.command('xack', [STREAM, 'fast', ...(await deliver(redis, STREAM, 'fast', 'c', 1000))])
  assert.deepEqual(await trim(redis), { gone: 0, losses: [] })
  await deliver(redis, STREAM, 'slow', 'c', 600)
  await redis.command('xack', [STREAM, 'slow', ...ids.slice(0, 333), ...ids.slice(334, 600)])
  assert.deepEqual(await trim(redis), { gone: 333, losses: [] })
  await redis.command('xack', [STREAM, 'slow', ids[333]!])
  assert.deepEqual(await trim(redis), { gone: 267, losses: [] })
  assert.deepEqual(
    (await entriesIn(redis, STREAM)).map(({ id }) => id),
    ids.slice(600),
  )
  const rest = await deliver(redis, STREAM, 'slow', 'c', 1000)
  assert.deepEqual(rest, ids.slice(600))
  await redis.command('xack', [STREAM, 'slow', ...rest])
  assert.equal((await trim(redis)).gone, 400)
  assert.deepEqual(await addNumbers(redis, STREAM, 1), await deliver(redis, STREAM, 'slow', 'c', 10))
})

testOnStreams('a stream that nobody reads keeps the last ten seconds', async ({ redis }) => {
  const old = Date.now() - 60_000
  for (let n = 0; n < 50; n++) await redis.command('xadd', [STREAM, `${old}-${n}`, 'n', n])
  const ids = await addNumbers(redis, STREAM, 5)
  assert.deepEqual(await trim(redis), { gone: 50, losses: [] })
  assert.deepEqual(
    (await entriesIn(redis, STREAM)).map(({ id }) => id),
    ids,
  )
})

testOnStreams('there is nothing to trim where there is no stream', async (store) => {
  assert.deepEqual(await trimStream(store.redis, STREAM), [])
  await store.redis.command('set', [STREAM, 'x'])
  await assert.rejects(trimStream(store.redis, STREAM), { code: 'KV_WRONG_TYPE' })
})

testOnStreams(
  'four trimmers, four readers whose consumers are removed, and a writer at once: each of 10,000 entries is read once, and none is left',
  async (store) => {
    const { redis } = store
    const COUNT = 10_000
    await ensureGroup(redis, STREAM, 'a', '$')
    await ensureGroup(redis, STREAM, 'b', '$')
    let isDone = false
    const trimming = [1, 2, 3, 4].map(async () => {
      const trimmer = store.connect()
      while (!isDone) {
        assert.deepEqual(await trimStream(trimmer, STREAM), [])
      }
    })
    const remover = store.connect()
    const removing = (async () => {
      const consumers = [0, 1, 2, 3].flatMap((n) => ['a', 'b'].map((group) => ({ group, name: `gone${n}:hub` })))
      while (!isDone)
        await Promise.all(
          consumers.map(({ group, name }) => remover.run(SCRIPTS.dropUnseen, [STREAM], [group, name, 0])),
        )
    })()
    const seen = { a: [] as string[], b: [] as string[] }
    const reading = (['a', 'a', 'b', 'b'] as const).map(async (group, index) => {
      const reader = store.connect()
      while (seen[group].length < COUNT) {
        const ids = await deliver(reader, STREAM, group, `gone${index}:hub`, 1 + Math.floor(Math.random() * 200))
        seen[group].push(...ids)
        if (ids.length > 0) assert.equal(await reader.command('xack', [STREAM, group, ...ids]), ids.length)
      }
    })
    const writer = store.connect()
    const ids: string[] = []
    for (let n = 0; n < COUNT; n += 100) ids.push(...(await addNumbers(writer, STREAM, 100, n)))
    await Promise.all(reading)
    await until(async () => (await redis.command('xlen', [STREAM])) === 0, 'all is trimmed')
    isDone = true
    await Promise.all([...trimming, removing])
    assert.deepEqual(seen.a.toSorted(), ids.toSorted())
    assert.deepEqual(seen.b.toSorted(), ids.toSorted())
  },
)

testOnStreams('the cap cuts what groups need, and says which group has lost how many, once', async (store) => {
  const { redis } = store
  await ensureGroup(redis, STREAM, 'behind', '$')
  await ensureGroup(redis, STREAM, 'busy', '$')
  await ensureGroup(redis, STREAM, 'done', '$')
  await addNumbers(redis, STREAM, 1000)
  await deliver(redis, STREAM, 'behind', 'c', 100)
  await deliver(redis, STREAM, 'busy', 'c', 1000)
  await redis.command('xack', [STREAM, 'done', ...(await deliver(redis, STREAM, 'done', 'c', 1000))])
  const other = store.connect()
  const looks = await Promise.all([trimStream(redis, STREAM, 300), trimStream(other, STREAM, 300)])
  assert.equal(await redis.command('xlen', [STREAM]), 300)
  assert.deepEqual(looks.flat(), [
    { group: 'behind', missed: 600, inHand: 100 },
    { group: 'busy', missed: 0, inHand: 700 },
  ])
  await addNumbers(redis, STREAM, 50)
  assert.deepEqual(await trimStream(redis, STREAM, 300), [
    { group: 'behind', missed: 50, inHand: 100 },
    { group: 'busy', missed: 0, inHand: 750 },
  ])
})

testOnStreams(
  'a stream above the cap is not cut while nobody needs the entries: they are trimmed',
  async ({ redis }) => {
    await ensureGroup(redis, STREAM, 'g', '$')
    await addNumbers(redis, STREAM, 1000)
    await redis.command('xack', [STREAM, 'g', ...(await deliver(redis, STREAM, 'g', 'c', 800))])
    assert.deepEqual(await trim(redis, 300), { gone: 800, losses: [] })
  },
)

testOnStreams('a group that was created by others is looked after too', async ({ redis }) => {
  await addNumbers(redis, STREAM, 10)
  await redis.command('xgroup', ['CREATE', STREAM, 'g', '$'])
  await addNumbers(redis, STREAM, 100)
  assert.deepEqual(await trim(redis, 60), { gone: 50, losses: [{ group: 'g', missed: 40, inHand: 0 }] })
})

testOnStreams('an entry that is pending and was cut keeps the rest, until it is acknowledged', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  const ids = await addNumbers(redis, STREAM, 10)
  await deliver(redis, STREAM, 'g', 'c', 10)
  await redis.command('xtrim', [STREAM, 'MAXLEN', 5])
  await redis.command('xack', [STREAM, 'g', ...ids.slice(5)])
  assert.equal((await trim(redis)).gone, 0)
  await redis.command('xack', [STREAM, 'g', ...ids.slice(0, 5)])
  assert.equal((await trim(redis)).gone, 5)
  assert.deepEqual(await pendingOf(redis, STREAM, 'g'), [])
})

testOnStreams('a stream that was wiped and begins again loses nothing', async ({ redis }) => {
  for (const isWiped of [false, true]) {
    if (isWiped) await redis.command('del', [STREAM])
    await ensureGroup(redis, STREAM, 'g', '$')
    await addNumbers(redis, STREAM, 100)
    await redis.command('xack', [STREAM, 'g', ...(await deliver(redis, STREAM, 'g', 'c', 100))])
    await addNumbers(redis, STREAM, 10)
    assert.deepEqual(await trim(redis), { gone: 100, losses: [] })
  }
})
