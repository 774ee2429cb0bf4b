import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BOX, eventOf, type FakeThread, fakeThread, hubOf, instanceOf, NOTHING } from './fake-thread.ts'

const ONE = { concurrency: 1 }
const last = ({ taken }: FakeThread) => taken.at(-1)!.id

test('other subscribers of the event and other groups are not held up', (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('order.placed', 'slow', ONE, instanceOf(thread))
  hub.subscribe('order.placed', 'quick', {}, instanceOf(thread))
  for (const id of ['evt_1', 'evt_2', 'evt_3']) hub.publish(eventOf(id), null)
  assert.deepEqual(thread.events.sort(), ['evt_1', 'evt_1', 'evt_2', 'evt_3'])
})

test('the places of a thread that dies are free, and a suspect takes one before those that wait', (t) => {
  const { hub } = hubOf(t)
  const [dying, other, quarantine] = [fakeThread(), fakeThread(), fakeThread(true)]
  hub.subscribe('order.placed', 'group', ONE, instanceOf(dying))
  for (const id of ['evt_1', 'evt_2', 'evt_3']) hub.publish(eventOf(id), null)
  assert.deepEqual(dying.events, ['evt_1'])
  hub.subscribe('order.placed', 'group', ONE, instanceOf(other))
  hub.threadGone(dying, NOTHING, BOX)
  assert.deepEqual(other.events, ['evt_2'])
  hub.subscribe('order.placed', 'group', ONE, instanceOf(quarantine))
  hub.quarantineUp(quarantine)
  assert.deepEqual(quarantine.events, [], 'it waits for a place')
  hub.delivered(last(other))
  assert.deepEqual([quarantine.events, other.events], [['evt_1'], ['evt_2']])
  hub.delivered(last(quarantine))
  assert.deepEqual(other.events, ['evt_2', 'evt_3'])
})

test('new code may bring another number, for what waits already, too', (t) => {
  const { hub } = hubOf(t)
  const [old, next, free] = [fakeThread(), fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'group', ONE, instanceOf(old))
  for (let n = 1; n <= 6; n++) hub.publish(eventOf(`evt_${n}`), null)
  old.hasRoom = false
  hub.subscribe('order.placed', 'group', { concurrency: 3 }, instanceOf(next))
  assert.deepEqual([old.events, next.events], [['evt_1'], ['evt_2', 'evt_3']])
  next.hasRoom = false
  hub.subscribe('order.placed', 'group', {}, instanceOf(free))
  assert.deepEqual(free.events, ['evt_4', 'evt_5', 'evt_6'], 'no number, no limit')
  hub.subscribe('order.placed', 'group', ONE, instanceOf(fakeThread()))
  hub.publish(eventOf('evt_7'), null)
  for (const thread of [old, next]) for (const { id } of thread.taken) hub.delivered(id)
  assert.equal(hub.pending, 4, 'a smaller one holds for what is published from then on')
  assert.deepEqual(free.events.length, 3)
})

test('an instance of a broadcast that is busy holds up no other', (t) => {
  const { hub } = hubOf(t)
  const [a, b] = [fakeThread(), fakeThread()]
  for (const thread of [a, b]) hub.subscribe('order.placed', 'group', { ...ONE, broadcast: true }, instanceOf(thread))
  hub.publish(eventOf('evt_1'), null)
  hub.publish(eventOf('evt_2'), null)
  hub.delivered(last(a))
  assert.deepEqual([a.events, b.events], [['evt_1', 'evt_2'], ['evt_1']])
})

test('by share: events of no known share wait for their own place, and get it', (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('order.placed', 'group', { concurrency: { max: 1, by: 0 } }, instanceOf(thread))
  hub.publish(eventOf('evt_a', { shares: JSON.stringify({ group: '1["a"]' }) }), null)
  for (const id of ['evt_1', 'evt_2', 'evt_3']) hub.publish(eventOf(id), null)
  assert.deepEqual(thread.events, ['evt_a', 'evt_1'])
  hub.delivered(last(thread))
  assert.deepEqual(thread.events, ['evt_a', 'evt_1', 'evt_2'])
  hub.delivered(last(thread))
  assert.deepEqual(thread.events, ['evt_a', 'evt_1', 'evt_2', 'evt_3'])
})
