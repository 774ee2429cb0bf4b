import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { SubscriberInstance, SubscriberThread } from '../../../src/primary/events/consumer.ts'
import { Hub } from '../../../src/primary/events/hub.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'
import { fakeThread, hubOf } from './fake-thread.ts'

const event = (id: string, more: Partial<EventFrame> = {}): EventFrame => ({
  id,
  parentId: null,
  event: 'order.placed',
  emitter: 'test.Emitter',
  requestId: 'req_1',
  key: null,
  trace: '',
  payloadKeys: '',
  timestampMs: Date.now(),
  delayMs: 0,
  ttlMs: 0,
  seq: 0,
  subscriber: 0,
  attempt: 0,
  payload: '{}',
  ...more,
})

/** A thread that takes everything and answers when the test says so. */
function thread(): SubscriberThread & { taken: number[] } {
  const taken: number[] = []
  return {
    isQuarantine: false,
    isStill: false,
    heldMs: 0,
    deliveriesInFlight: 0,
    hasRoom: true,
    send: (id) => taken.push(id) > 0,
    abandon: () => {},
    taken,
  }
}

const instanceOf = (thread: SubscriberThread): SubscriberInstance => ({
  thread,
  subscriberIndex: 0,
  plugin: 'test.Slow',
  identity: 'test.Slow.handle',
  isPaused: false,
})

test('nothing is kept for a subscriber that has left: not behind a key, not between two attempts, not delayed', async (t) => {
  const hub = new Hub({
    clock: SYSTEM_CLOCK,
    chance: SYSTEM_CHANCE,
    maxQueue: 100,
    onQuarantine: () => {},
    onQuarantineUsed: () => {},
    log: () => {},
  })
  t.after(() => hub.close())
  const lane = thread()
  const leave = hub.subscribe('order.placed', 'group', { retries: 5, backoffMs: 0 }, instanceOf(lane))
  hub.publish(event('evt_first', { key: 'one' }), null)
  hub.publish(event('evt_behind', { key: 'one' }), null)
  hub.publish(event('evt_failing'), null)
  hub.publish(event('evt_delayed', { delayMs: 1 }), null)
  const [first, failing] = lane.taken
  leave()
  hub.delivered(first!)
  hub.failed(failing!, { message: 'not now' })
  for (const until = Date.now() + 1000; hub.pending > 0 && Date.now() < until; ) await turn()
  assert.equal(hub.pending, 0)
  assert.equal(lane.taken.length, 2)
})

test('any number of expired events of one key is passed over', (t) => {
  const hub = new Hub({
    clock: SYSTEM_CLOCK,
    chance: SYSTEM_CHANCE,
    maxQueue: 100_000,
    onQuarantine: () => {},
    onQuarantineUsed: () => {},
    log: () => {},
  })
  t.after(() => hub.close())
  const lane = thread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(lane))
  hub.publish(event('evt_first', { key: 'one' }), null)
  for (let n = 0; n < 50_000; n++) hub.publish(event(`evt_${n}`, { key: 'one', ttlMs: 1 }), null)
  hub.publish(event('evt_last', { key: 'one' }), null)
  for (const until = Date.now() + 5; Date.now() < until; );
  hub.delivered(lane.taken[0]!)
  assert.equal(lane.taken.length, 2)
  assert.equal(hub.pending, 1)
})

test('nothing waits behind the dead letter of a subscriber that has left', (t) => {
  const { hub } = hubOf(t)
  const lane = thread()
  const leave = hub.subscribe('order.placed', 'group', { onDead: 'park' }, instanceOf(lane))
  hub.publish(event('evt_failing', { key: 'one' }), null)
  hub.publish(event('evt_behind', { key: 'one' }), null)
  leave()
  hub.failed(lane.taken[0]!, { message: 'never' })
  assert.equal(hub.pending, 0)
})

test('a subscriber of a quarantine lane that has left leaves nothing behind', (t) => {
  const { hub } = hubOf(t)
  const leave = hub.subscribe('order.placed', 'group', {}, { ...instanceOf(fakeThread(true)), isTemporary: true })
  leave()
  assert.deepEqual(hub.topology(), {})
})

test('a subscriber that says late that it has left takes nothing from the one that has come under its name', (t) => {
  const { hub } = hubOf(t)
  const [old, fresh] = [thread(), thread()]
  const leaveOld = hub.subscribe('order.placed', 'group', {}, instanceOf(old))
  hub.threadLeaving(old)
  hub.dropVacant()
  hub.subscribe('order.placed', 'group', {}, instanceOf(fresh))
  const left: string[] = []
  hub.groups = { isKnown: () => true, joined: () => {}, left: (_, group) => void left.push(group) }
  leaveOld()
  assert.deepEqual(left, [])
})

test('a letter that a subscriber makes after it has left holds up nothing of the one that has come under its name', (t) => {
  const { hub } = hubOf(t)
  const [old, fresh] = [thread(), thread()]
  const leave = hub.subscribe('order.placed', 'group', { onDead: 'park' }, instanceOf(old))
  hub.publish(event('evt_old', { key: 'one' }), null)
  leave()
  const taken: string[] = []
  const told = { ...fresh, send: (id: number, { id: name }: EventFrame) => taken.push(name) + fresh.taken.push(id) > 0 }
  hub.subscribe('order.placed', 'group', { onDead: 'park' }, instanceOf(told))
  for (const id of ['evt_1', 'evt_2']) hub.publish(event(id, { key: 'one' }), null)
  hub.failed(old.taken[0]!, { message: 'never' })
  hub.publish(event('evt_3', { key: 'one' }), null)
  hub.delivered(fresh.taken[0]!)
  hub.delivered(fresh.taken[1]!)
  assert.deepEqual(taken, ['evt_1', 'evt_2', 'evt_3'])
  hub.deadLetters.delete(hub.deadLetters.list()[0]!.id)
  assert.equal(taken.length, 3)
})

test('an event that is due when its subscriber has left is not kept, though a replay of its key was the last to end', async (t) => {
  const { hub } = hubOf(t)
  const lane = thread()
  const leave = hub.subscribe('order.placed', 'group', { retries: 0, onDead: 'park' }, instanceOf(lane))
  hub.publish(event('evt_bad', { key: 'one' }), null)
  hub.failed(lane.taken[0]!, { message: 'never' })
  hub.publish(event('evt_delayed', { key: 'one', delayMs: 1 }), null)
  assert.equal(hub.deadLetters.replay(hub.deadLetters.list()[0]!.id), true)
  leave()
  hub.delivered(lane.taken[1]!)
  for (const until = Date.now() + 1000; hub.pending > 0 && Date.now() < until; ) await turn()
  assert.equal(hub.pending, 0)
})
