import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { BOX, eventOf, type FakeThread, fakeThread, hubOf, instanceOf, NOTHING } from './fake-thread.ts'

const ONE = { concurrency: 1 }
const last = ({ taken }: FakeThread) => taken.at(-1)!.id

test('deliveries beyond the number wait in their order, whichever threads have room', (t) => {
  const { hub } = hubOf(t)
  const threads = [fakeThread(), fakeThread()]
  for (const thread of threads) hub.subscribe('order.placed', 'group', { concurrency: 2 }, instanceOf(thread))
  const [a, b] = threads as [FakeThread, FakeThread]
  hub.publish(eventOf('evt_1'), null)
  a.deliveriesInFlight = 1
  for (const id of ['evt_2', 'evt_3', 'evt_4']) hub.publish(eventOf(id), null)
  assert.deepEqual([a.events, b.events], [['evt_1'], ['evt_2']])
  hub.delivered(last(b))
  assert.deepEqual(b.events, ['evt_2', 'evt_3'])
  hub.delivered(last(b))
  hub.delivered(last(a))
  assert.deepEqual(b.events, ['evt_2', 'evt_3', 'evt_4'])
  hub.delivered(last(b))
  assert.equal(hub.pending, 0)
})

test('other subscribers of the event and other groups are not held up', (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('order.placed', 'slow', ONE, instanceOf(thread))
  hub.subscribe('order.placed', 'quick', {}, instanceOf(thread))
  for (const id of ['evt_1', 'evt_2', 'evt_3']) hub.publish(eventOf(id), null)
  assert.deepEqual(thread.events.sort(), ['evt_1', 'evt_1', 'evt_2', 'evt_3'])
})

test('a delivery between two attempts holds no place, and its next attempt waits for one', async (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('order.placed', 'group', { ...ONE, retries: 1, backoffMs: 20 }, instanceOf(thread))
  hub.publish(eventOf('evt_1'), null)
  hub.publish(eventOf('evt_2'), null)
  hub.failed(last(thread), { message: 'not now' })
  assert.deepEqual(thread.events, ['evt_1', 'evt_2'])
  await new Promise((resolve) => setTimeout(resolve, 40))
  assert.deepEqual(thread.events, ['evt_1', 'evt_2'], 'its time has come and its place is taken')
  hub.delivered(last(thread))
  assert.deepEqual(thread.taken.at(-1), { id: last(thread), event: 'evt_1', attempt: 2 })
})

test('an attempt whose time is up gives its place away', async (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('order.placed', 'group', { ...ONE, timeoutMs: 1 }, instanceOf(thread))
  hub.publish(eventOf('evt_1'), null)
  hub.publish(eventOf('evt_2'), null)
  await until(() => thread.events.includes('evt_2'), 'the next one')
  hub.delivered(thread.taken[0]!.id)
  hub.publish(eventOf('evt_3'), null)
  assert.deepEqual(thread.events, ['evt_1', 'evt_2'], 'the late answer has freed no second place')
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

test('deliveries that a thread never began go back to the front of those that wait', (t) => {
  const { hub } = hubOf(t)
  const [dying, other] = [fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'group', ONE, instanceOf(dying))
  hub.publish(eventOf('evt_1'), null)
  hub.publish(eventOf('evt_2'), null)
  hub.threadGone(dying, new Set([last(dying)]), BOX)
  hub.subscribe('order.placed', 'group', ONE, instanceOf(other))
  assert.deepEqual(other.events, ['evt_1'])
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

test('of attempts that are late together, each is given up before its place is taken', async (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  const order: string[] = []
  const spied = {
    ...thread,
    send: (id: number, frame: { id: string }) =>
      order.push(`${frame.id} is sent`) > 0 && thread.taken.push({ id, event: frame.id, attempt: 1 }) > 0,
    abandon: (id: number) => void order.push(`${thread.taken.find((each) => each.id === id)!.event} is given up`),
  }
  hub.subscribe('order.paid', 'first', { ...ONE, timeoutMs: 1 }, instanceOf(spied))
  hub.subscribe('order.placed', 'second', { ...ONE, timeoutMs: 1 }, instanceOf(spied))
  // Whoever is told that its request has failed may make the hub go on.
  const failed = (): void => hub.subscribersChanged()
  hub.publish(eventOf('evt_1', { event: 'order.paid' }), null, { open: 0, onlyFailures: true, reply: failed, failed })
  for (const id of ['evt_3', 'evt_4']) hub.publish(eventOf(id), null)
  await until(() => order.includes('evt_4 is sent'), 'the last one')
  assert.ok(order.indexOf('evt_3 is given up') < order.indexOf('evt_4 is sent'), order.join(', '))
})
