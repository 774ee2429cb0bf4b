import assert from 'node:assert/strict'
import { StreamDeadLetters } from '../../../src/primary/redis-streams/dead-letters.ts'
import { StreamSettlements, TakenEntry } from '../../../src/primary/redis-streams/settlements.ts'
import { StreamGroup } from '../../../src/primary/redis-streams/stream-group.ts'
import { RELEASED, streamOf } from '../../../src/runtime/redis-streams/keys.ts'
import { ensureGroup, listConsumers, SCRIPTS, touch } from '../../../src/runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { addNumbers, deliver, pendingOf, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const STREAM = streamOf('order.paid')
/** Gives these entries of a consumer back. */
const release = (redis: RedisClient, consumer: string, ...ids: string[]) =>
  redis.run<string[]>(SCRIPTS.releaseEntries, [STREAM], ['g', consumer, RELEASED, ...ids])

testOnStreams('an entry that another consumer has claimed, or that is acknowledged, is left alone', async (store) => {
  const { redis } = store
  await ensureGroup(redis, STREAM, 'g', '$')
  const ids = await addNumbers(redis, STREAM, 4)
  await deliver(redis, STREAM, 'g', 'a:hub', 4)
  await redis.command('xclaim', [STREAM, 'g', 'b:hub', 0, ids[1]!])
  await redis.command('xack', [STREAM, 'g', ids[3]!])
  assert.deepEqual(await release(redis, 'a:hub', ...ids), [ids[0], ids[2]])
  assert.deepEqual(
    (await pendingOf(redis, STREAM, 'g')).map(({ consumer, deliveries }) => [consumer, deliveries]),
    [
      [RELEASED, 0],
      ['b:hub', 2],
      [RELEASED, 0],
    ],
  )
})

testOnStreams('as many as a process may have are given back at once', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  const ids = await addNumbers(redis, STREAM, 1300)
  await deliver(redis, STREAM, 'g', 'a:hub', 1300)
  assert.deepEqual(await release(redis, 'a:hub', ...ids), ids)
  assert.ok((await pendingOf(redis, STREAM, 'g')).every(({ deliveries }) => deliveries === 0))
})

testOnStreams('a consumer can show that it lives, and takes nothing by it', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  await addNumbers(redis, STREAM, 1)
  await touch(redis, STREAM, 'g', 'a:hub')
  const idle = async () => (await listConsumers(redis, STREAM, 'g'))[0]!.idleMs
  await until(async () => (await idle()) >= 1000, 'idle')
  await touch(redis, STREAM, 'g', 'a:hub')
  assert.ok((await idle()) < 1000)
  assert.equal((await pendingOf(redis, STREAM, 'g')).length, 0)
  await assert.rejects(touch(redis, STREAM, 'missing', 'a:hub'))
})

testOnStreams(
  'a process that has lost its name gives nothing back that the next one of this name has',
  async ({ redis }) => {
    await ensureGroup(redis, STREAM, 'g', '$')
    await addNumbers(redis, STREAM, 2)
    const ids = await deliver(redis, STREAM, 'g', 'a:hub', 2)
    let isOurs = false
    const settlements = new StreamSettlements({
      redis,
      deadLetters: new StreamDeadLetters(redis, { onCut: () => assert.fail() }),
      replica: 'a',
      consumer: 'a:hub',
      isOurs: () => isOurs,
      mayBegin: () => true,
      onConfirmed: () => {},
      log: () => {},
    })
    const group = new StreamGroup({
      event: 'order.paid',
      stream: STREAM,
      name: 'g',
      subscriber: 'g',
      isBroadcast: false,
    })
    const entries = ids.map(
      (id) => new TakenEntry(settlements, { group, id, chars: 1, onGone: null, hasAttempts: false }),
    )
    for (const entry of entries) group.add(entry)
    settlements.release(entries[0]!)
    isOurs = true
    settlements.release(entries[1]!)
    const givenBack = async () => (await pendingOf(redis, STREAM, 'g')).filter(({ consumer }) => consumer === RELEASED)
    const [entry, ...more] = await until(async () => {
      const found = await givenBack()
      return found.length > 0 ? found : null
    }, 'the second is given back')
    assert.deepEqual([entry!.id, more, group.size], [ids[1], [], 0])
  },
)
