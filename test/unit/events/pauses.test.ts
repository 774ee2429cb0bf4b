import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hubEventOf } from '../../../src/primary/events/consumer.ts'
import type { Hub } from '../../../src/primary/events/hub.ts'
import { eventOf, fakeThread, hubOf, instanceOf } from './fake-thread.ts'

const PAUSE = { event: 'order.placed', group: 'group', sinceMs: 1 }
const take = (hub: Hub, id: string, more = {}): void => void hub.take(hubEventOf(eventOf(id, more), 0, null), null)

test('hub: a paused subscriber begins nothing, what runs ends, and the other subscribers go on', (t) => {
  const { hub } = hubOf(t)
  const [lane, other] = [fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'group', {}, instanceOf(lane))
  hub.subscribe('order.placed', 'others', {}, instanceOf(other))
  take(hub, 'first')
  assert.deepEqual(hub.setPauses([PAUSE]), [PAUSE])
  assert.deepEqual(hub.setPauses([PAUSE]), [])
  take(hub, 'second')
  take(hub, 'third')
  hub.delivered(lane.taken[0]!.id)
  assert.deepEqual([lane.events, other.events], [['first'], ['first', 'second', 'third']])
  assert.deepEqual([...hub.deliveries()].filter(({ consumer }) => consumer.group === 'group').length, 2)
  assert.deepEqual(hub.setPauses([]), [PAUSE])
  assert.deepEqual(lane.events, ['first', 'second', 'third'])
})

test('hub: a pause holds for the code that comes after a reload, and for a subscriber that comes later', (t) => {
  const { hub } = hubOf(t)
  hub.setPauses([PAUSE])
  const lane = fakeThread()
  const leave = hub.subscribe('order.placed', 'group', {}, instanceOf(lane))
  take(hub, 'first')
  leave()
  const next = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(next))
  take(hub, 'second')
  assert.deepEqual([lane.events, next.events], [[], []])
  hub.setPauses([])
  assert.deepEqual(next.events, ['second'])
})

test('hub: a suspect of a paused subscriber waits, and no quarantine lane is wanted for it', (t) => {
  const wanted: boolean[] = []
  const { hub } = hubOf(t, { onQuarantine: (isWanted) => wanted.push(isWanted) })
  const lane = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(lane))
  take(hub, 'deadly')
  hub.setPauses([PAUSE])
  const blackBox = { reason: 'exit', message: 'gone' } as never
  hub.threadGone(lane, new Set(), blackBox)
  assert.deepEqual(wanted, [])
  hub.setPauses([])
  assert.deepEqual(wanted, [true])
})

test('hub: what waits for its time or its next attempt runs now, once, and the old time runs nothing', async (t) => {
  const { hub } = hubOf(t)
  const lane = fakeThread()
  hub.subscribe('order.placed', 'group', { retries: 5, backoffMs: 1 }, instanceOf(lane))
  take(hub, 'delayed', { delayMs: 20 })
  assert.equal(
    hub.runNow(({ event }) => event.id === 'delayed'),
    1,
  )
  assert.equal(
    hub.runNow(({ event }) => event.id === 'delayed'),
    0,
  )
  assert.deepEqual(lane.events, ['delayed'])
  await new Promise((resolve) => setTimeout(resolve, 60))
  assert.deepEqual(lane.events, ['delayed'])
  hub.failed(lane.taken[0]!.id, { message: 'not now' })
  hub.runNow(() => true)
  await new Promise((resolve) => setTimeout(resolve, 60))
  assert.deepEqual(
    lane.taken.map(({ event, attempt }) => [event, attempt]),
    [
      ['delayed', 1],
      ['delayed', 2],
    ],
  )
})
