import assert from 'node:assert/strict'
import { StreamDeadLetters } from '../../../src/primary/redis-streams/dead-letters.ts'
import { StreamSettlements } from '../../../src/primary/redis-streams/settlements.ts'
import { StreamGroup, TakenEntry } from '../../../src/primary/redis-streams/stream-group.ts'
import { streamOf } from '../../../src/runtime/redis-streams/keys.ts'
import { ensureGroup, SCRIPTS } from '../../../src/runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { addNumbers, deliver, pendingOf, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const STREAM = streamOf('order.paid')
const DAY_MS = 86_400_000
/** Gives these entries of a consumer so much idle time. */
const move = (redis: RedisClient, consumer: string, idleMs: number, ...ids: string[]) =>
  redis.run<string[]>(SCRIPTS.renewEntries, [STREAM], ['g', consumer, idleMs, ...ids])

testOnStreams(
  'an entry that another consumer has claimed, or that is acknowledged, is left alone',
  async ({ redis }) => {
    await ensureGroup(redis, STREAM, 'g', '$')
    const ids = await addNumbers(redis, STREAM, 4)
    await deliver(redis, STREAM, 'g', 'a:hub', 4)
    await redis.command('xclaim', [STREAM, 'g', 'b:hub', 0, ids[1]!])
    await redis.command('xack', [STREAM, 'g', ids[3]!])
    assert.deepEqual(await move(redis, 'a:hub', 0, ...ids), [ids[0], ids[2]])
    assert.deepEqual(
      (await pendingOf(redis, STREAM, 'g')).map(({ consumer, deliveries }) => [consumer, deliveries]),
      [
        ['a:hub', 1],
        ['b:hub', 2],
        ['a:hub', 1],
      ],
    )
  },
)

testOnStreams('released entries are claimed at once, and have ended no process', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '$')
  const ids = await addNumbers(redis, STREAM, 1300)
  await deliver(redis, STREAM, 'g', 'a:hub', 1300)
  assert.deepEqual(await move(redis, 'a:hub', DAY_MS, ...ids.slice(0, 5)), ids.slice(0, 5))
  const claim = [STREAM, 'g', 'b:hub', 60_000, '0-0', 'COUNT', 2000, 'JUSTID']
  const claimed = async () => (await redis.command<[string, string[]]>('xautoclaim', claim))[1].length
  assert.equal(await claimed(), 5)
  assert.deepEqual(await move(redis, 'a:hub', DAY_MS, ...ids.slice(5)), ids.slice(5))
  assert.equal(await claimed(), 1295)
  assert.ok((await pendingOf(redis, STREAM, 'g')).every(({ deliveries }) => deliveries === 0))
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
    const entries = ids.map((id) => new TakenEntry(group, id, 1, settlements))
    for (const entry of entries) group.add(entry)
    settlements.release(entries[0]!)
    isOurs = true
    settlements.release(entries[1]!)
    const givenBack = async () => (await pendingOf(redis, STREAM, 'g')).filter(({ idleMs }) => idleMs >= DAY_MS)
    const [entry, ...more] = await until(async () => {
      const found = await givenBack()
      return found.length > 0 ? found : null
    }, 'the second is given back')
    assert.deepEqual([entry!.id, more, group.size], [ids[1], [], 0])
  },
)
