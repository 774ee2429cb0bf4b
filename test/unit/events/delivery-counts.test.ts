import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProcessCounter } from '../../../src/contracts/registry.ts'
import {
  COUNTED_SUBSCRIBERS_MAX,
  DeliveryCounts,
  OUTCOMES,
  type SubscriberCounts,
} from '../../../src/primary/events/delivery-counts.ts'
import type { Hub } from '../../../src/primary/events/hub.ts'
import { BOX, eventOf, fakeThread, hubOf, instanceOf, NOTHING } from './fake-thread.ts'

/** What is not 0. */
function countsOf(hub: Hub, subscriber: string): Partial<SubscriberCounts> {
  const counted: Record<string, number> = {}
  for (const { samples } of hub.counts.metrics())
    for (const { labels, value } of samples)
      if (labels.subscriber === subscriber && value > 0) counted[labels.outcome ?? labels.reason!] = value
  return counted
}

test('deliveries are counted by subscriber and by what became of them', (t) => {
  const { hub } = hubOf(t, { chance: { fraction: () => 0, id: () => 'id' } })
  const lane = fakeThread()
  hub.subscribe('order.placed', 'pack', { retries: 0 }, instanceOf(lane))
  for (const id of ['a', 'b', 'c', 'd']) hub.publish(eventOf(id), null)
  const [a, b, c, d] = lane.taken.map(({ id }) => id)
  hub.delivered(a!)
  hub.failed(b!, { message: 'no' })
  hub.failed(c!, { message: 'later', later: { ms: 60_000, all: false } })
  hub.failed(d!, { message: 'away', away: true })
  assert.deepEqual(countsOf(hub, 'pack'), { done: 1, dead: 1, put_off: 1, unavailable: 1 })
  hub.cancel(() => true)
  assert.deepEqual(countsOf(hub, 'pack'), { done: 1, dead: 1, put_off: 1, unavailable: 1, cancelled: 2 })
})

test('an attempt that failed or whose lane died is a retry, and a subscriber that leaves takes waiting deliveries along', (t) => {
  const { hub } = hubOf(t)
  const [lane, other] = [fakeThread(), fakeThread()]
  const leave = hub.subscribe('order.placed', 'pack', { retries: 3, backoffMs: 60_000 }, instanceOf(lane))
  hub.publish(eventOf('a'), null)
  hub.failed(lane.taken[0]!.id, { message: 'no' })
  hub.subscribe('order.sent', 'mail', { retries: 3 }, instanceOf(other))
  hub.publish(eventOf('b', { event: 'order.sent' }), null)
  hub.threadGone(other, NOTHING, BOX)
  assert.deepEqual(countsOf(hub, 'pack'), { failed: 1 })
  assert.deepEqual(countsOf(hub, 'mail'), { lane_died: 1 })
  lane.hasRoom = false
  hub.publish(eventOf('c'), null)
  leave()
  assert.deepEqual(countsOf(hub, 'pack'), { failed: 1, lost: 1 })
})

test('an event that is too late for its lifetime is counted as expired', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1000 })
  const { hub } = hubOf(t)
  const lane = fakeThread()
  lane.hasRoom = false
  hub.subscribe('order.placed', 'pack', {}, instanceOf(lane))
  hub.publish(eventOf('a', { ttlMs: 10 }), null)
  t.mock.timers.tick(1000)
  lane.hasRoom = true
  hub.subscribersChanged()
  assert.deepEqual(countsOf(hub, 'pack'), { expired: 1 })
})

test('a subscriber that nothing came to has counts of 0', (t) => {
  const { hub } = hubOf(t)
  hub.subscribe('order.placed', 'pack', {}, instanceOf(fakeThread()))
  const [{ samples }] = hub.counts.metrics(hub.workloads()) as [ProcessCounter]
  assert.deepEqual(
    samples.map(({ labels, value }) => [labels.subscriber, labels.outcome, value]),
    OUTCOMES.map((outcome) => ['pack', outcome, 0]),
  )
})

test('a subscriber that comes back goes on counting, and further ones share one line', () => {
  const counts = new DeliveryCounts()
  const subscriber = (group: string) => ({ event: 'e', group, counts: null })
  counts.of(subscriber('first')).done++
  counts.of(subscriber('first')).done++
  for (let n = 1; n < COUNTED_SUBSCRIBERS_MAX + 10; n++) counts.of(subscriber(`s${n}`)).done++
  const { samples } = counts.metrics()[0]!
  const done = (name: string) =>
    samples.find(({ labels }) => labels.subscriber === name && labels.outcome === 'done')?.value
  assert.deepEqual([done('first'), done('s1'), done('other')], [2, 1, 10])
  assert.equal(done(`s${COUNTED_SUBSCRIBERS_MAX}`), undefined)
})
