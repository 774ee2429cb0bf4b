import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DelayedEvents } from '../../../src/primary/streams/delayed.ts'
import { DELAYED, lastOfKey, streamOf } from '../../../src/runtime/streams/keys.ts'
import { type DelayedPublication, delayEvent } from '../../../src/runtime/streams/publisher.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { firstFields, streamStore, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const EVENT = 'order.paid'
const STREAM = streamOf(EVENT)

function publication(n: number, more: Partial<DelayedPublication> = {}): DelayedPublication {
  const eventId = `evt_${String(n).padStart(8, '0')}`
  return { eventId, event: EVENT, key: null, fields: ['e', `{"id":"${eventId}"}`, 'p', `{"n":${n}}`], ...more }
}

function delayedEvents(redis: RedisClient, logs: string[] = []): DelayedEvents {
  return new DelayedEvents(redis, { log: (level, message) => logs.push(`${level} ${message}`) })
}

/** Steps until nothing is due. */
async function drain(delayed: DelayedEvents): Promise<number> {
  let released = 0
  for (;;) {
    const step = await delayed.release()
    released += step.released
    if (step.nextInMs !== 0) return released
  }
}

testOnStreams('a repeated publication is kept once and unchanged, and waits no longer', async ({ redis }) => {
  const fields = ['e', '☃', 'p', Buffer.from([0, 255, 0xc3, 0x28, 10])]
  assert.equal(await delayEvent(redis, publication(1, { fields }), 0), true)
  assert.equal(await delayEvent(redis, publication(1, { fields }), 3_600_000), false)
  assert.equal(await drain(delayedEvents(redis)), 1)
  assert.deepEqual(
    await firstFields(redis, STREAM),
    fields.map((field) => Buffer.from(field)),
  )
})

testOnStreams('a member that is no delayed event stays, is logged once, and delays nothing', async ({ redis }) => {
  const logs: string[] = []
  const delayed = delayedEvents(redis, logs)
  for (let n = 0; n < 150; n++) await redis.command('zadd', [DELAYED, 0, `strange ${n}`])
  await redis.command('zadd', [DELAYED, 0, Buffer.from([0x93, 0xa1, 0x61, 0xa1, 0x61, 0x80])])
  await delayEvent(redis, publication(1), 0)
  await delayed.release()
  await delayed.release()
  assert.equal(await redis.command('xlen', [STREAM]), 1)
  assert.deepEqual(await delayed.release(), { released: 0, nextInMs: null })
  assert.equal(await redis.command('zcard', [DELAYED]), 151)
  assert.equal(logs.length, 2)
  assert.match(logs[0]!, /^WARNING heddle:delayed holds what is no delayed event/)
})

testOnStreams('an event whose stream cannot be written waits longer, and the others go on', async ({ redis }) => {
  const logs: string[] = []
  const delayed = delayedEvents(redis, logs)
  await redis.command('set', [streamOf('broken'), 'x'])
  await redis.command('rpush', [lastOfKey(EVENT, 'k'), 'x'])
  await delayEvent(redis, publication(1, { event: 'broken' }), 0)
  await delayEvent(redis, publication(2, { key: 'k' }), 0)
  await delayEvent(redis, publication(3), 0)
  const { released, nextInMs } = await delayed.release()
  assert.equal(released, 1)
  assert.ok(nextInMs! > 1000)
  assert.equal(logs.length, 1)
  assert.match(logs[0]!, /delete it/)
  assert.equal(await redis.command('zcard', [DELAYED]), 2)
})

testOnStreams('events of a MiB each are released in small steps', async ({ redis }) => {
  const payload = `{"x":"${'y'.repeat(1_000_000)}"}`
  for (let n = 0; n < 10; n++) await delayEvent(redis, publication(n, { fields: ['e', '{}', 'p', payload] }), 0)
  const delayed = delayedEvents(redis)
  const first = await delayed.release()
  assert.ok(first.released >= 4 && first.released < 10, String(first.released))
  assert.equal(first.nextInMs, 0)
  assert.equal(first.released + (await drain(delayed)), 10)
})

test('a full server keeps the delayed events, and they are released when there is room', async (t) => {
  const store = await streamStore(t, ['--maxmemory-policy', 'noeviction'])
  if (store === null) return
  const { redis } = store
  await delayEvent(redis, publication(1), 0)
  await redis.command('config', ['SET', 'maxmemory', 1])
  const logs: string[] = []
  const delayed = delayedEvents(redis, logs)
  await assert.rejects(delayed.release(), { code: 'KV_FULL' })
  delayed.start()
  t.after(() => delayed.stop())
  await until(() => logs.length > 0, 'the trouble is told')
  await redis.command('config', ['SET', 'maxmemory', 0])
  await until(async () => (await redis.command('xlen', [STREAM])) === 1, 'it is released')
  assert.equal(logs.length, 1)
})
