/** In memory, of events with the same `unique` a subscriber has one at a time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UniqueEvent } from '../../../src/transport/frames/event-frame.ts'
import { eventOf, fakeThread, hubOf, instanceOf } from './fake-thread.ts'

const running: UniqueEvent = { name: 'u', while: 'running', replaces: false }
const waiting: UniqueEvent = { name: 'u', while: 'waiting', replaces: false }
const last: UniqueEvent = { name: 'u', while: 'waiting', replaces: true }

test('the one that is there stays until it has ended, or until it begins', (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('order.placed', 'g', { concurrency: 1 }, instanceOf(thread))
  const publish = (id: string, unique: UniqueEvent | null): string => hub.publish(eventOf(id, { unique }), null)
  assert.equal(publish('a', running), 'a')
  assert.equal(publish('b', running), 'a')
  assert.equal(publish('c', waiting), 'c')
  assert.equal(publish('d', waiting), 'c')
  hub.delivered(thread.taken[0]!.id)
  assert.deepEqual(thread.events, ['a', 'c'])
  assert.equal(publish('e', waiting), 'e')
  assert.equal(publish('f', running), 'f')
  for (const n of [1, 2]) hub.delivered(thread.taken[n]!.id)
  assert.deepEqual(thread.events, ['a', 'c', 'e', 'f'])
  hub.failed(thread.taken[3]!.id, { name: 'Error', message: 'no', code: 'INTERNAL' } as never)
  assert.equal(publish('g', running), 'g')
})

test('what waits gets the payload of the next, and keeps its id', (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  const sent: string[] = []
  hub.subscribe('order.placed', 'g', { concurrency: 1 }, instanceOf(thread))
  const { send } = thread
  thread.send = (id, frame) => {
    sent.push(`${frame.id} ${frame.payload}`)
    return send(id, frame)
  }
  hub.publish(eventOf('holder'), null)
  for (const n of [1, 2, 3])
    assert.equal(hub.publish(eventOf(`e${n}`, { unique: last, payload: `{"n":${n}}`, key: 'k' }), null), 'e1')
  assert.throws(() => hub.publish(eventOf('other', { unique: last, key: 'other' }), null), {
    code: 'EVENT_OPTIONS_INVALID',
  })
  assert.equal(hub.pending, 2)
  hub.delivered(thread.taken[0]!.id)
  hub.delivered(thread.taken[1]!.id)
  assert.deepEqual(sent, ['holder {}', 'e1 {"n":3}'])
  assert.equal(hub.pending, 0)
})

test('each subscriber has its own, and a broadcast every one', (t) => {
  const { hub } = hubOf(t)
  const [slow, quick, all] = [fakeThread(), fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'slow', {}, instanceOf(slow))
  hub.subscribe('order.placed', 'quick', {}, instanceOf(quick))
  hub.subscribe('order.placed', 'all', { broadcast: true }, instanceOf(all))
  hub.publish(eventOf('a', { unique: running }), null)
  hub.delivered(quick.taken[0]!.id)
  hub.publish(eventOf('b', { unique: running }), null)
  assert.deepEqual([slow.events, quick.events, all.events], [['a'], ['a', 'b'], ['a', 'b']])
})

test('what a tree publishes after its cancel takes nobody’s place, and what it had in another’s place goes with it', (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('order.placed', 'g', { concurrency: 1 }, instanceOf(thread))
  hub.publish(eventOf('holder'), null)
  const other: UniqueEvent = { ...last, name: 'v' }
  hub.publish(eventOf('a', { unique: last }), null)
  hub.publish(eventOf('b', { unique: last, parentId: 'root' }), null)
  hub.publish(eventOf('c', { unique: other, parentId: 'root' }), null)
  hub.publish(eventOf('d', { unique: other, payload: '{"of":"d"}' }), null)
  assert.deepEqual(hub.cancelMeant({ id: 'root', causedToo: true }), { waiting: 1, running: 0 })
  assert.equal(hub.publish(eventOf('e', { unique: other, parentId: 'root' }), null), 'c')
  hub.delivered(thread.taken[0]!.id)
  hub.delivered(thread.taken[1]!.id)
  assert.deepEqual(thread.events, ['holder', 'c'])
  assert.equal(hub.pending, 0)
})
