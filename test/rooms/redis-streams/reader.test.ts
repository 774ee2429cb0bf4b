// Which entries this process reads, and how it makes groups that are missing.
import assert from 'node:assert/strict'
import { Consumer } from '../../../src/primary/events/consumer.ts'
import type { Hub } from '../../../src/primary/events/hub.ts'
import { StreamReader } from '../../../src/primary/redis-streams/stream-reader.ts'
import { streamOf } from '../../../src/runtime/redis-streams/keys.ts'
import { listConsumers, listGroups, ring } from '../../../src/runtime/redis-streams/stream-commands.ts'
import { until } from '../../support/until.ts'
import { fakeThread, instanceOf } from '../../unit/events/fake-thread.ts'
import { addNumbers, type Store, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const EVENT = 'order.paid'
const STREAM = streamOf(EVENT)
const MISSING = /^1 groups were missing from the key-value store/

/** A process with these subscribers. It keeps what it reads. */
function readerOn({ redis, connect }: Store, t: { after(end: () => void): void }, ...subscribers: string[]) {
  const consumers = subscribers.map((subscriber) => {
    const consumer = new Consumer(EVENT, subscriber, {}, [])
    consumer.addInstance(instanceOf(fakeThread()))
    return consumer
  })
  const hub = { workloads: () => consumers, onTopology: () => {} }
  const taken: string[] = []
  const told: string[] = []
  const reader = new StreamReader({
    redis,
    claimIdleMs: 60_000,
    listening: connect(),
    replica: 'me',
    consumer: 'me:hub',
    isOurs: () => true,
    mayBegin: () => true,
    hub: hub as unknown as Hub,
    flush: () => {},
    take: ({ name }, [id]) => taken.push(`${name} ${id}`),
    claimOwn: async () => {},
    log: (_, message) => told.push(message),
  })
  reader.start()
  t.after(() => {
    reader.stop()
    reader.close()
  })
  const leave = (): void => {
    consumers.pop()
    hub.onTopology()
  }
  return { reader, taken, told, leave, opened: () => until(() => reader.isOpen, 'open') }
}

testOnStreams('each group gets what is added after it was made, also without a message', async (store, t) => {
  const { redis } = store
  await addNumbers(redis, STREAM, 1)
  const { taken, opened } = readerOn(store, t, 'a', 'b')
  await opened()
  const [first] = await addNumbers(redis, STREAM, 1)
  ring(redis, STREAM)
  await until(() => taken.length === 2, 'both have the first')
  const [second] = await addNumbers(redis, STREAM, 1)
  await until(() => taken.length === 4, 'both have the second')
  assert.deepEqual(taken.toSorted(), [`a ${first}`, `a ${second}`, `b ${first}`, `b ${second}`])
})

testOnStreams('a message has a group read at once', async (store, t) => {
  const { redis } = store
  const { taken, opened } = readerOn(store, t, 'a')
  await opened()
  const beganMs = performance.now()
  for (let n = 1; n <= 20; n++) {
    await addNumbers(redis, STREAM, 1)
    ring(redis, STREAM)
    await until(() => taken.length === n, 'it is read')
  }
  // Without messages each takes up to a second.
  assert.ok(performance.now() - beganMs < 5000)
})

testOnStreams('a group that is missing is made again, read from its beginning, and told of', async (store, t) => {
  const { redis } = store
  const { taken, told, opened } = readerOn(store, t, 'a')
  await opened()
  await redis.command('del', [STREAM])
  const [id] = await addNumbers(redis, STREAM, 1)
  await until(() => taken.includes(`a ${id}`), 'it is read')
  await until(() => told.length > 0, 'the warning')
  assert.match(told[0]!, MISSING)
})

testOnStreams('a missing group is told of when the process stops right after', async (store, t) => {
  const { redis } = store
  const { reader, told, opened } = readerOn(store, t, 'a')
  await opened()
  await redis.command('del', [STREAM])
  reader.loseAll()
  await until(async () => (await listGroups(redis, STREAM)).length === 1, 'it is made again')
  reader.stop()
  await until(() => told.length > 0, 'the warning')
  assert.match(told[0]!, MISSING)
})

testOnStreams('a group whose last subscriber here has left is read no more, and stays', async (store, t) => {
  const { redis } = store
  const { taken, leave, opened } = readerOn(store, t, 'a', 'b')
  await opened()
  leave()
  await new Promise(setImmediate)
  const [id] = await addNumbers(redis, STREAM, 1)
  ring(redis, STREAM)
  await until(() => taken.length > 0, 'a has it')
  assert.deepEqual(taken, [`a ${id}`])
  assert.deepEqual((await listGroups(redis, STREAM)).map(({ name }) => name).toSorted(), ['a', 'b'])
})

testOnStreams('a process that reads no more still shows that it lives', async (store, t) => {
  const { redis } = store
  const { reader, opened } = readerOn(store, t, 'a')
  await opened()
  reader.stop()
  const consumers = () => listConsumers(redis, STREAM, 'a')
  await until(async () => (await consumers()).length === 1, 'a sign of life')
  await until(async () => (await consumers())[0]!.idleMs > 1000, 'a pause')
  await until(async () => (await consumers())[0]!.idleMs < 1000, 'the next one')
})
