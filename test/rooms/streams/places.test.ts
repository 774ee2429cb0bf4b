import assert from 'node:assert/strict'
import { StreamDeadLetters } from '../../../src/primary/streams/dead-letters.ts'
import { StreamGroup, TakenEntry } from '../../../src/primary/streams/stream-group.ts'
import { StreamPlaces } from '../../../src/primary/streams/stream-order.ts'
import { asideOf, DEAD_STREAM, placeOf, placesOf, streamOf } from '../../../src/runtime/streams/keys.ts'
import { ensureGroup } from '../../../src/runtime/streams/stream-commands.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { addNumbers, deliver, entriesIn, pendingOf, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const EVENT = 'order.paid'
const STREAM = streamOf(EVENT)
const PLACE = placeOf('g', 'k')
const SETTLEMENTS = {
  acknowledge: () => {},
  release: () => {},
  noteAttempt: () => {},
  storeDeadLetter: async () => {},
}

/** A group with so many entries in hand, the first of which has become a dead letter that holds up the key of all. */
async function behindLetter(redis: RedisClient, count: number, max?: number) {
  const letters = new StreamDeadLetters(redis, { onCut: () => {}, ...(max === undefined ? {} : { max }) })
  const places = new StreamPlaces({ redis, events: () => [EVENT] })
  const group = new StreamGroup({ event: EVENT, stream: STREAM, name: 'g', subscriber: 'g', isBroadcast: false })
  const taken = (id: string) => new TakenEntry(group, id, 1, SETTLEMENTS)
  await ensureGroup(redis, STREAM, 'g', '$')
  await addNumbers(redis, STREAM, count)
  const [bad, ...ids] = await deliver(redis, STREAM, 'g', 'c', count)
  const add = (entryId?: string) =>
    letters.add(
      {
        envelope: JSON.stringify({ id: 'evt_1', payload_keys: [], key: 'k' }),
        payload: '{}',
        event: EVENT,
        group: 'g',
        subscriber: 'g',
        error: 'bad',
        attempts: 1,
        blackBox: null,
      },
      entryId === undefined ? undefined : { stream: STREAM, group: 'g', entryId, key: 'k', letter: null },
    )
  const letter = (await add(bad))!
  return { letters, letter, places, ids, add, admit: (id: string) => places.admit(taken(id), 'k') }
}

const waiting = (redis: RedisClient) => redis.command<number>('llen', [asideOf(EVENT, PLACE)])

testOnStreams('what is behind a letter is set aside once, however many ask at a time', async (store) => {
  const { redis } = store
  const { ids, admit, letters } = await behindLetter(redis, 4)
  const answers = await Promise.all([...ids, ...ids].map(admit))
  assert.deepEqual([answers.includes(true), await waiting(redis), await pendingOf(redis, STREAM, 'g')], [false, 3, []])
  const [shown] = await letters.list({ parked: true })
  assert.deepEqual([shown!.parked, shown!.key, shown!.waiting], [true, 'k', 3])
})

testOnStreams('a letter that somebody deletes in the store lets its key go on at the next look', async ({ redis }) => {
  const { ids, admit, letter, places } = await behindLetter(redis, 3)
  for (const id of ids) await admit(id)
  const before = (await entriesIn(redis, STREAM)).length
  await places.look()
  assert.equal((await entriesIn(redis, STREAM)).length, before, 'the letter is there')
  await redis.command('xdel', [DEAD_STREAM, letter.slice(3)])
  await places.look()
  await places.look()
  const [first, ...more] = (await entriesIn(redis, STREAM)).slice(before)
  assert.deepEqual([first!.fields.o, more, await waiting(redis)], ['g', [], 1])
  // The next one goes when this one is finished, also by somebody who tells nobody.
  const [again] = await deliver(redis, STREAM, 'g', 'c', 1)
  await places.look()
  assert.equal(await waiting(redis), 1)
  await redis.command('xack', [STREAM, 'g', again!])
  await places.look()
  const [last] = await deliver(redis, STREAM, 'g', 'c', 1)
  await redis.command('xack', [STREAM, 'g', last!])
  await places.look()
  assert.equal(await redis.command<number>('exists', [placesOf(EVENT), asideOf(EVENT, PLACE)]), 0, 'nothing is left')
})

testOnStreams('a letter that is dropped for new ones lets its key go on', async ({ redis }) => {
  const { ids, admit, add, places } = await behindLetter(redis, 2, 3)
  await admit(ids[0]!)
  for (let n = 0; n < 3; n++) await add()
  await places.look()
  assert.equal(await waiting(redis), 0)
})

testOnStreams('where somebody has put another type, nothing is held up and nothing is lost', async ({ redis }) => {
  const { ids, admit, letters, letter } = await behindLetter(redis, 3)
  await redis.command('set', [asideOf(EVENT, PLACE), 'x'])
  assert.equal(await admit(ids[0]!), true)
  await redis.command('del', [placesOf(EVENT)])
  await redis.command('set', [placesOf(EVENT), 'x'])
  assert.equal(await admit(ids[1]!), true)
  assert.equal((await pendingOf(redis, STREAM, 'g')).length, 2)
  assert.equal(await letters.delete(letter), true)
  assert.deepEqual(await letters.list(), [])
})

testOnStreams(
  'what is behind a letter does not begin while the server takes no writes: it is asked again',
  async (store) => {
    const { redis } = store
    const { ids, admit } = await behindLetter(redis, 2)
    await redis.command('config', ['SET', 'maxmemory', 1])
    await assert.rejects(admit(ids[0]!), /maxmemory/)
    await redis.command('config', ['SET', 'maxmemory', 0])
    assert.deepEqual([await admit(ids[0]!), await waiting(redis)], [false, 1])
  },
)
