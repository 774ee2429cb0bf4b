import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HUB_MAX_PENDING_BYTES } from '../../../src/primary/events/queue-budget.ts'
import { until } from '../../support/until.ts'
import { BOX, eventOf, fakeThread, hubOf, instanceOf, NOTHING } from './fake-thread.ts'

test('events for a subscriber that the new code does not have are dropped with a warning, and the rest stays', (t) => {
  const { hub, warnings } = hubOf(t)
  const old = fakeThread()
  hub.subscribe('order.placed', 'shop.Sell.gone', {}, instanceOf(old))
  hub.subscribe('order.placed', 'shop.Sell.stays', {}, instanceOf(old))
  hub.threadLeaving(old)
  for (const id of ['evt_1', 'evt_2']) hub.publish(eventOf(id, { key: 'one' }), null)
  hub.publish(eventOf('evt_3'), null)
  assert.equal(hub.pending, 6)
  const fresh = fakeThread()
  hub.subscribe('order.placed', 'shop.Sell.stays', {}, instanceOf(fresh))
  hub.dropVacant()
  assert.deepEqual(warnings, ['shop.Sell.gone is gone: 3 events waiting for it were dropped'])
  assert.equal(hub.pending, 3)
  hub.publish(eventOf('evt_4'), null)
  assert.deepEqual(fresh.events, ['evt_1', 'evt_3', 'evt_4'], 'evt_2 is behind its key')
})

test('the events of a plugin that is set aside wait, its neighbours go on, and it goes on in order', (t) => {
  const { hub } = hubOf(t)
  const [thread, primary] = [fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'shop.Sell.handle', {}, instanceOf(thread))
  hub.subscribe('order.placed', 'shop.Count.handle', {}, instanceOf(primary, 'shop.Count'))
  hub.pausePlugin('shop.Sell', true)
  for (const id of ['evt_1', 'evt_2']) hub.publish(eventOf(id), null)
  assert.deepEqual(thread.events, [])
  assert.deepEqual(primary.events, ['evt_1', 'evt_2'])
  const late = fakeThread()
  hub.subscribe('order.placed', 'shop.Sell.handle', {}, instanceOf(late))
  assert.deepEqual(late.events, [], 'a new lane of it waits too')
  hub.pausePlugin('shop.Sell', false)
  assert.deepEqual([...thread.events, ...late.events], ['evt_1', 'evt_2'])
})

test('a slow subscriber fills half of the queue; then its events are refused, and no others', (t) => {
  const { hub } = hubOf(t, { maxQueue: 20 })
  const [thread, other] = [fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'shop.Sell.handle', {}, instanceOf(thread))
  hub.subscribe('order.paid', 'shop.Count.handle', {}, instanceOf(other, 'shop.Count'))
  hub.pausePlugin('shop.Sell', true)
  for (let n = 0; n < 10; n++) hub.publish(eventOf(`evt_${n}`), null)
  assert.throws(() => hub.publish(eventOf('evt_more'), null), {
    code: 'EVENT_BUS_FULL',
    message: /^shop.Sell.handle is too far behind: \d+ deliveries wait/,
  })
  assert.equal(hub.isCrowded, false)
  hub.publish(eventOf('evt_paid', { event: 'order.paid' }), null)
  assert.deepEqual(other.events, ['evt_paid'])
  hub.pausePlugin('shop.Sell', false)
  assert.equal(thread.taken.length, 10)
  hub.delivered(thread.taken[0]!.id)
  hub.publish(eventOf('evt_more'), null)
  assert.equal(thread.taken.length, 11)
})

test('a request fails when the thread of the only subscriber that can answer dies', async (t) => {
  const { hub, wishes } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('price.wanted', 'group', { broadcast: true }, instanceOf(thread))
  const reply = hub.request(eventOf('evt_asks', { event: 'price.wanted' }), null, 60_000)
  hub.threadGone(thread, NOTHING, BOX)
  await assert.rejects(reply, { code: 'EVENT_HANDLER_FAILED', message: 'The thread that handled the request has died' })
  assert.equal(hub.pending, 0)
  assert.deepEqual(wishes, [], 'what one thread alone was to get is not tried elsewhere')
})

test('a request waits for the other threads when one of them dies', async (t) => {
  const { hub } = hubOf(t)
  const [dying, other] = [fakeThread(), fakeThread()]
  for (const thread of [dying, other]) hub.subscribe('price.wanted', 'group', { broadcast: true }, instanceOf(thread))
  const reply = hub.request(eventOf('evt_asks', { event: 'price.wanted' }), null, 60_000)
  hub.threadGone(dying, NOTHING, BOX)
  hub.reply(other.taken[0]!.id, '{"price":1}')
  assert.equal(await reply, '{"price":1}')
})

test('two slow subscribers get a third each, and what waits behind a key or for its time counts', (t) => {
  const { hub } = hubOf(t, { maxQueue: 20 })
  for (const plugin of ['shop.Sell', 'shop.Pack']) {
    hub.subscribe('order.placed', plugin, {}, instanceOf(fakeThread(), plugin))
    hub.pausePlugin(plugin, true)
  }
  for (let n = 0; n < 5; n++) hub.publish(eventOf(`evt_${n}`, { key: 'one' }), null)
  for (let n = 0; n < 2; n++) hub.publish(eventOf(`evt_later_${n}`, { delayMs: 60_000 }), null)
  assert.throws(() => hub.publish(eventOf('evt_more'), null), {
    code: 'EVENT_BUS_FULL',
    message: /^shop.Sell is too far behind/,
  })
  assert.equal(hub.isCrowded, false)
})

test('a subscriber that comes back finds its instance in the quarantine lane', (t) => {
  const { hub } = hubOf(t)
  const [first, second, quarantine] = [fakeThread(), fakeThread(), fakeThread(true)]
  const leave = hub.subscribe('order.placed', 'group', {}, instanceOf(first))
  hub.subscribe('order.placed', 'group', {}, instanceOf(quarantine))
  leave()
  hub.subscribe('order.placed', 'group', {}, instanceOf(second))
  hub.publish(eventOf('evt_suspect'), null)
  hub.threadGone(second, NOTHING, BOX)
  assert.deepEqual(quarantine.events, ['evt_suspect'])
})

test('a request fails too when that thread dies before it had room for the event', async (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  thread.hasRoom = false
  hub.subscribe('price.wanted', 'group', { broadcast: true }, instanceOf(thread))
  const reply = hub.request(eventOf('evt_asks', { event: 'price.wanted' }), null, 60_000)
  hub.threadGone(thread, NOTHING, BOX)
  await assert.rejects(reply, {
    code: 'EVENT_HANDLER_FAILED',
    message: 'The thread that was to handle the request is gone',
  })
})

test('a broadcast copy that its thread has no room for holds back no other, with a key or without', (t) => {
  for (const key of [null, 'one']) {
    const { hub } = hubOf(t)
    const [still, other] = [fakeThread(), fakeThread()]
    still.hasRoom = false
    for (const thread of [still, other]) hub.subscribe('order.placed', 'group', { broadcast: true }, instanceOf(thread))
    for (const id of ['evt_1', 'evt_2']) {
      hub.publish(eventOf(id, { key }), null)
      assert.equal(other.events.at(-1), id)
      hub.delivered(other.taken.at(-1)!.id)
    }
    assert.equal(hub.pending, 2)
    hub.threadGone(still, NOTHING, BOX)
    assert.equal(hub.pending, 0, 'its copies go with it')
  }
})

test('events that a dead thread never began go to the others in their order, before those that wait', (t) => {
  const { hub } = hubOf(t)
  const [dying, other] = [fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'group', {}, instanceOf(dying))
  for (const id of ['evt_1', 'evt_2', 'evt_3']) hub.publish(eventOf(id), null)
  dying.hasRoom = false
  hub.publish(eventOf('evt_4'), null)
  hub.threadGone(dying, new Set(dying.taken.map(({ id }) => id)), BOX)
  hub.subscribe('order.placed', 'group', {}, instanceOf(other))
  assert.deepEqual(other.events, ['evt_1', 'evt_2', 'evt_3', 'evt_4'])
})

test('the time of a delivery does not run out in a thread that stands still', async (t) => {
  const { hub } = hubOf(t)
  const [still, other] = [fakeThread(), fakeThread()]
  hub.subscribe('order.placed', 'group', { timeoutMs: 1 }, instanceOf(still))
  hub.subscribe('order.paid', 'group', { timeoutMs: 1 }, instanceOf(other))
  still.isStill = true
  hub.publish(eventOf('evt_stands_still'), null)
  hub.publish(eventOf('evt_hangs', { event: 'order.paid' }), null)
  await until(() => other.abandoned.length === 1, 'the other one to be given up')
  assert.deepEqual(still.abandoned, [])
  still.isStill = false
  await until(() => still.abandoned.length === 1, 'the thread that turns again')
  assert.equal(hub.pending, 0)
})

test('a request fails when its subscriber leaves before the event was sent, and when it expires', async (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  thread.hasRoom = false
  const leave = hub.subscribe('price.wanted', 'group', {}, instanceOf(thread))
  const left = hub.request(eventOf('evt_left', { event: 'price.wanted' }), null, 60_000)
  leave()
  await assert.rejects(left, { code: 'EVENT_HANDLER_FAILED', message: 'The subscriber is gone' })
  hub.subscribe('price.wanted', 'group', {}, instanceOf(thread))
  const expired = hub.request(eventOf('evt_expired', { event: 'price.wanted', ttlMs: 1 }), null, 60_000)
  await new Promise((resolve) => setTimeout(resolve, 5))
  thread.hasRoom = true
  await assert.rejects(expired, { message: 'The request has expired before it was handled' })
  assert.deepEqual(thread.events, [])
})

test('a request to a broadcast subscriber that has no thread at the moment fails at once', async (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('price.wanted', 'group', { broadcast: true }, instanceOf(thread))
  hub.threadGone(thread, NOTHING, BOX)
  const reply = hub.request(eventOf('evt_asks', { event: 'price.wanted' }), null, 60_000)
  await assert.rejects(reply, { code: 'EVENT_HANDLER_FAILED' })
})

test('a subscriber stays set aside while it has no thread', (t) => {
  const { hub } = hubOf(t, { maxQueue: 20 })
  const thread = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(thread))
  hub.pausePlugin('shop.Sell', true)
  hub.threadGone(thread, NOTHING, BOX)
  for (let n = 0; n < 10; n++) hub.publish(eventOf(`evt_${n}`), null)
  assert.throws(() => hub.publish(eventOf('evt_more'), null), { code: 'EVENT_BUS_FULL' })
})

test('any number of expired events of one key is passed over', (t) => {
  const { hub } = hubOf(t, { maxQueue: 200_000 })
  const lane = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(lane))
  hub.publish(eventOf('evt_first', { key: 'one' }), null)
  for (let n = 0; n < 50_000; n++) hub.publish(eventOf(`evt_${n}`, { key: 'one', ttlMs: 1 }), null)
  hub.publish(eventOf('evt_last', { key: 'one' }), null)
  for (const until = Date.now() + 5; Date.now() < until; );
  hub.delivered(lane.taken[0]!.id)
  assert.deepEqual(lane.events, ['evt_first', 'evt_last'])
  assert.equal(hub.pending, 1)
})

test('a subscriber that says late that it has left takes nothing from the one that has come under its name', (t) => {
  const { hub } = hubOf(t)
  const [old, fresh] = [fakeThread(), fakeThread()]
  const leaveOld = hub.subscribe('order.placed', 'group', {}, instanceOf(old))
  hub.threadLeaving(old)
  hub.dropVacant()
  hub.subscribe('order.placed', 'group', {}, instanceOf(fresh))
  const left: string[] = []
  hub.groups = { isKnown: () => true, left: (_, group) => void left.push(group) }
  leaveOld()
  assert.deepEqual(left, [])
})

test('the queue is bounded in bytes too, and takes more as soon as something is delivered', (t) => {
  const { hub } = hubOf(t, { maxQueue: 100_000 })
  const lane = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(lane))
  const payload = 'x'.repeat(1 << 20)
  const fits = HUB_MAX_PENDING_BYTES / 2 / payload.length
  for (let n = 0; n < fits; n++) hub.publish(eventOf(`evt_${n}`, { payload }), null)
  const more = () => hub.publish(eventOf('evt_more', { payload }), null)
  assert.throws(more, { code: 'EVENT_BUS_FULL' })
  hub.delivered(lane.taken[0]!.id)
  more()
  assert.equal(hub.pending, fits)
})

test('a share whose limit is used up holds up no other when a thread has room again', (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe('order.placed', 'g', { limit: [{ max: 1, perMs: 5000, by: 0 }] }, instanceOf(thread))
  const publish = (id: string, share: string): string => hub.publish(eventOf(id, { shares: share }), null)
  publish('a1', '1["a"]')
  thread.hasRoom = false
  publish('a2', '1["a"]')
  publish('b1', '1["b"]')
  thread.hasRoom = true
  hub.subscribersChanged()
  assert.deepEqual(thread.events, ['a1', 'b1'])
})
