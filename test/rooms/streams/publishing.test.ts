import assert from 'node:assert/strict'
import { lastOfKey, streamOf } from '../../../src/runtime/streams/keys.ts'
import { isAcknowledged, LAST_OF_KEY_MS, publishKeyed } from '../../../src/runtime/streams/publisher.ts'
import { ensureGroup, isNoGroup } from '../../../src/runtime/streams/stream-commands.ts'
import { addNumbers, deliver, entriesIn, firstFields, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const STREAM = streamOf('order.paid')

testOnStreams('events with one key name the one before, those with another key do not', async ({ redis }) => {
  const publish = (key: string, n: number) => publishKeyed(redis, 'order.paid', key, ['e', '{}', 'p', `{"n":${n}}`])
  const first = await publish('a', 1)
  const other = await publish('b', 2)
  const second = await publish('a', 3)
  assert.deepEqual(await entriesIn(redis, STREAM), [
    { id: first, fields: { e: '{}', p: '{"n":1}' } },
    { id: other, fields: { e: '{}', p: '{"n":2}' } },
    { id: second, fields: { e: '{}', p: '{"n":3}', a: first } },
  ])
  const leftMs = await redis.command<number>('pttl', [lastOfKey('order.paid', 'a')])
  assert.ok(leftMs > LAST_OF_KEY_MS - 60_000 && leftMs <= LAST_OF_KEY_MS, String(leftMs))
})

testOnStreams('fields are bytes: nothing of them is read or changed', async (store) => {
  const bytes = Buffer.from([0, 255, 10, 13, 0xc3, 0x28])
  await publishKeyed(store.redis, 'order.paid', '\n "key"\0', ['e', '☃', 'p', bytes])
  const fields = await firstFields(store.redis, STREAM)
  assert.deepEqual(fields, [Buffer.from('e'), Buffer.from('☃'), Buffer.from('p'), bytes])
})

testOnStreams('a stream of another type is a fault that says so, and the key keeps its place', async (store) => {
  await store.redis.command('set', [STREAM, 'mine'])
  await assert.rejects(publishKeyed(store.redis, 'order.paid', 'k', ['e', '{}', 'p', '{}']), { code: 'KV_WRONG_TYPE' })
  assert.equal(await store.redis.command('exists', [lastOfKey('order.paid', 'k')]), 0)
})

testOnStreams('an entry is finished when the group had it and has acknowledged it', async ({ redis }) => {
  await ensureGroup(redis, STREAM, 'g', '0')
  await ensureGroup(redis, STREAM, 'other', '0')
  const ids = await addNumbers(redis, STREAM, 5)
  await deliver(redis, STREAM, 'g', 'c', 4)
  await redis.command('xack', [STREAM, 'g', ids[1]!, ids[2]!])
  assert.deepEqual(await isAcknowledged(redis, STREAM, 'g', ids), [false, true, true, false, false])
  assert.deepEqual(await isAcknowledged(redis, STREAM, 'other', ids), [false, false, false, false, false])
  assert.deepEqual(await isAcknowledged(redis, STREAM, 'g', []), [])
})

testOnStreams(
  'an entry that was cut before the group had it does not hold up its successors for ever',
  async ({ redis }) => {
    await ensureGroup(redis, STREAM, 'g', '0')
    const ids = await addNumbers(redis, STREAM, 3)
    await redis.command('xtrim', [STREAM, 'MAXLEN', 1])
    await deliver(redis, STREAM, 'g', 'c', 1)
    assert.deepEqual(await isAcknowledged(redis, STREAM, 'g', ids), [true, true, false])
  },
)

testOnStreams('a group that is not there is told apart from other faults', async ({ redis }) => {
  await assert.rejects(isAcknowledged(redis, STREAM, 'g', ['1-0']), isNoGroup)
  await ensureGroup(redis, STREAM, 'g', '$')
  await assert.rejects(isAcknowledged(redis, STREAM, 'h', ['1-0']), isNoGroup)
  await redis.command('set', ['text', 'x'])
  await assert.rejects(isAcknowledged(redis, 'text', 'g', ['1-0']), (fault) => !isNoGroup(fault))
})
