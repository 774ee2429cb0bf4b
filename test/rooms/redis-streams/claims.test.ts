// What this process takes over of others, and what it does not.
import assert from 'node:assert/strict'
import { Consumer, type HubEvent } from '../../../src/primary/events/consumer.ts'
import type { Hub } from '../../../src/primary/events/hub.ts'
import { StreamClaims } from '../../../src/primary/redis-streams/claims.ts'
import { StreamDeadLetters } from '../../../src/primary/redis-streams/dead-letters.ts'
import { StreamSettlements, type TakenEntry } from '../../../src/primary/redis-streams/settlements.ts'
import { StreamCancels } from '../../../src/primary/redis-streams/stream-cancels.ts'
import { StreamDeliveries } from '../../../src/primary/redis-streams/stream-deliveries.ts'
import { StreamGroup } from '../../../src/primary/redis-streams/stream-group.ts'
import { encodeEntry } from '../../../src/runtime/redis-streams/entry.ts'
import { RELEASED, streamOf } from '../../../src/runtime/redis-streams/keys.ts'
import { ensureGroup, readGroup, SCRIPTS, touch } from '../../../src/runtime/redis-streams/stream-commands.ts'
import type { RedisClient } from '../../../src/stores/redis/client.ts'
import { until } from '../../support/until.ts'
import { eventOf, fakeThread, instanceOf } from '../../unit/events/fake-thread.ts'
import { pendingOf, type Store, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const EVENT = 'order.paid'
const STREAM = streamOf(EVENT)
const IDLE_MS = 200

/** The reading side of a process: its group and claims. The hub keeps what it gets. */
async function processOn(
  redis: RedisClient,
  t: { after(end: () => void): void },
  { lanes = 1, isBroadcast = false } = {},
) {
  const begun: string[] = []
  let mayBegin = true
  const taken = new Map<string, TakenEntry>()
  const take = ({ id, source }: HubEvent): number => {
    taken.set(id, source as TakenEntry)
    return begun.push(id)
  }
  const hub = { take, record: () => {} } as unknown as Hub
  const group = new StreamGroup({ event: EVENT, stream: STREAM, name: 'g', subscriber: 'g', isBroadcast })
  const consumer = new Consumer(EVENT, 'g', {}, [])
  for (let n = 0; n < lanes; n++) consumer.addInstance(instanceOf(fakeThread()))
  group.consumer = consumer
  group.state = 'open'
  const own = { redis, replica: 'me', consumer: 'me:hub', isOurs: () => true, mayBegin: () => mayBegin }
  const log = () => {}
  const settlements = new StreamSettlements({
    ...own,
    deadLetters: new StreamDeadLetters(redis, { onCut: () => {} }),
    onConfirmed: () => {},
    log,
  })
  const deliveries = new StreamDeliveries({
    ...own,
    cancels: new StreamCancels({ hub, redis, listening: redis }),
    hub,
    settlements,
    log,
  })
  const claims = new StreamClaims({
    ...own,
    claimIdleMs: IDLE_MS,
    groups: () => [group],
    lose: () => {},
    deliveries,
    settlements,
    log,
  })
  t.after(() => {
    claims.close()
    settlements.close()
  })
  const read = async (count: number): Promise<void> => {
    for (const entry of await readGroup(redis, STREAM, 'g', 'me:hub', count)) deliveries.take(group, entry)
  }
  const stop = (): void => {
    mayBegin = false
  }
  await ensureGroup(redis, STREAM, 'g', '0')
  return { begun, taken, claims, group, read, stop }
}

async function publish({ redis }: Store, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const frame = eventOf(`evt_${n}`, { event: EVENT, payload: '{}' })
    await redis.command('xadd', [STREAM, '*', ...encodeEntry(frame, 'other', null)])
  }
}

testOnStreams('what arrives while the process ends is given back, and waits for nothing', async (store, t) => {
  const { redis } = store
  const { begun, group, read, stop } = await processOn(redis, t)
  await publish(store, 3)
  await read(1)
  stop()
  await read(2)
  assert.deepEqual([begun, group.size], [['evt_0'], 1])
  const released = async () => (await pendingOf(redis, STREAM, 'g')).filter(({ consumer }) => consumer === RELEASED)
  await until(async () => (await released()).length === 2, 'two that others may claim at once')
})

testOnStreams('an entry of a broadcast that is no event is a dead letter, and is not kept', async (store, t) => {
  const { redis } = store
  const { group, read } = await processOn(redis, t, { isBroadcast: true })
  await redis.command('xadd', [STREAM, '*', 'n', 1])
  await read(1)
  await until(async () => (await pendingOf(redis, STREAM, 'g')).length === 0, 'nothing is pending')
  assert.equal(group.size, 0)
})

testOnStreams('nothing is claimed right after the clock of the store was set forward', async (store, t) => {
  const { redis } = store
  let aheadS = 0
  let asked = 0
  const command = async (name: string, args: (string | number)[]): Promise<unknown> => {
    const answer = await redis.command<unknown>(name, args)
    if (name !== 'time') return answer
    asked++
    const [seconds, micros] = answer as [string, string]
    return [Number(seconds) + aheadS, micros]
  }
  const set = { command, run: redis.run.bind(redis), isReady: true, onUp: () => {} } as unknown as RedisClient
  const { begun, claims } = await processOn(set, t)
  await publish(store, 1)
  claims.start()
  await until(() => asked > 1, 'two looks')
  aheadS = 100
  await readGroup(redis, STREAM, 'g', 'living:hub', 1)
  await new Promise((resolve) => setTimeout(resolve, 5 * IDLE_MS))
  assert.deepEqual(begun, [])
  await until(() => begun.length > 0, 'it is claimed later')
})

testOnStreams('what is given back is claimed at once, and what a consumer has that reads is not', async (store, t) => {
  const { redis } = store
  const { begun, claims } = await processOn(redis, t)
  await publish(store, 2)
  await readGroup(redis, STREAM, 'g', 'living:hub', 1)
  await readGroup(redis, STREAM, 'g', 'stopped:hub', 1)
  const living = setInterval(() => void touch(redis, STREAM, 'g', 'living:hub').catch(() => {}), IDLE_MS / 10)
  t.after(() => clearInterval(living))
  const [, left] = await pendingOf(redis, STREAM, 'g')
  await redis.run(SCRIPTS.releaseEntries, [STREAM], ['g', 'stopped:hub', RELEASED, left!.id])
  claims.start()
  await until(() => begun.length > 0, 'it is claimed')
  // Long enough to be claimed without a sign of life.
  await new Promise((resolve) => setTimeout(resolve, 4000))
  assert.deepEqual(begun, ['evt_1'])
  clearInterval(living)
  await until(() => begun.length > 1, 'the other one is claimed, too')
})

testOnStreams('entries that may have ended processes are claimed one at a time', async (store, t) => {
  const { redis } = store
  const { begun, taken, claims, group } = await processOn(redis, t)
  await publish(store, 3)
  await readGroup(redis, STREAM, 'g', 'me:hub', 3)
  const ids = (await pendingOf(redis, STREAM, 'g')).map(({ id }) => id)
  // The second has been delivered once.
  await redis.command('xclaim', [STREAM, 'g', 'me:hub', 0, ids[0]!, ids[2]!, 'RETRYCOUNT', 3, 'JUSTID'])
  group.state = 'new'
  await claims.claimOwn(group)
  assert.deepEqual(begun, ['evt_1', 'evt_0'])
  assert.equal((await pendingOf(redis, STREAM, 'g'))[2]!.consumer, RELEASED)
  group.state = 'open'
  claims.start()
  await new Promise((resolve) => setTimeout(resolve, 5 * IDLE_MS))
  assert.equal(begun.length, 2)
  group.remove(taken.get('evt_0')!)
  await until(() => begun.length === 3, 'the third')
})
