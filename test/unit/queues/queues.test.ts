import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { hubEventOf } from '../../../src/primary/events/consumer.ts'
import { Queues } from '../../../src/primary/queues/queues.ts'
import { eventOf, fakeThread, hubOf, instanceOf } from '../events/fake-thread.ts'

const EVENT = 'order.placed'
const idOf = (n: number): string => `evt_${String(n).padStart(32, '0')}`

function queuesOf(t: TestContext) {
  const { hub } = hubOf(t)
  const lane = fakeThread()
  const queues = new Queues({
    hub,
    clock: SYSTEM_CLOCK,
    replica: 'a',
    durable: null,
    backlog: async () => [{ event: EVENT, group: 'group', count: 7 }],
  })
  t.after(() => queues.close())
  const take = (n: number, more = {}): void =>
    void hub.take(hubEventOf({ ...eventOf(idOf(n), more), event: EVENT }, 0, null), null)
  return { hub, lane, queues, take }
}

test('queues: without a store the hub is counted and read in pages, with what a broker has', async (t) => {
  const { hub, lane, queues, take } = queuesOf(t)
  hub.subscribe(EVENT, 'group', { concurrency: 1 }, instanceOf(lane))
  for (let n = 1; n <= 6; n++) take(n)
  take(7, { delayMs: 60_000 })
  const [queue] = await queues.queues()
  assert.deepEqual(
    [queue!.event, queue!.subscriber, queue!.running, queue!.waiting, queue!.later, queue!.more, queue!.subscribed],
    [EVENT, 'group', 1, 5 + 7, 1, [], true],
  )
  const pages: string[][] = []
  for (let after: string | null | undefined; after !== null; ) {
    const page = await queues.deliveries({
      event: EVENT,
      subscriber: 'group',
      limit: 2,
      ...(after === undefined ? {} : { after }),
    })
    pages.push(page.deliveries.map(({ id }) => id))
    after = page.next
  }
  assert.deepEqual(pages, [[idOf(2), idOf(3)], [idOf(4), idOf(5)], [idOf(6)]])
  const running = await queues.deliveries({ event: EVENT, subscriber: 'group', state: 'running' })
  assert.deepEqual(
    running.deliveries.map(({ id, running: runs }) => [id, runs!.replica, runs!.lane]),
    [[idOf(1), 'a', null]],
  )
})

test('queues: a pause without a store is listed also when its subscriber is gone, and can be resumed', async (t) => {
  const { hub, lane, queues, take } = queuesOf(t)
  const leave = hub.subscribe(EVENT, 'group', {}, instanceOf(lane))
  hub.subscribe(EVENT, 'others', {}, instanceOf(lane))
  assert.equal(await queues.setPaused(EVENT, null, true), 2)
  assert.equal(await queues.setPaused(EVENT, 'others', false), 1)
  leave()
  const shown = (await queues.queues()).map(({ subscriber, subscribed, paused }) => [
    subscriber,
    subscribed,
    paused !== null,
  ])
  assert.deepEqual(shown, [
    ['group', false, true],
    ['others', true, false],
  ])
  assert.equal(await queues.setPaused(EVENT, 'group', false), 1)
  hub.subscribe(EVENT, 'group', {}, instanceOf(lane))
  take(1)
  assert.equal(lane.events.length, 2)
})

test('queues: several looks within a second are one', async (t) => {
  const { hub, lane, queues } = queuesOf(t)
  hub.subscribe(EVENT, 'group', {}, instanceOf(lane))
  assert.equal(queues.queues(), queues.queues())
  assert.equal((await queues.queues()).length, 1)
})
