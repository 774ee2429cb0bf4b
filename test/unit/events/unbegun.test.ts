/** What a thread gives back without having begun it waits like any other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { type DeliveryChange, type EventSource, hubEventOf, NEW_SHARE } from '../../../src/primary/events/consumer.ts'
import { TakenEntry } from '../../../src/primary/redis-streams/settlements.ts'
import type { UniqueEvent } from '../../../src/transport/frames/event-frame.ts'
import { eventOf, fakeThread, hubOf, instanceOf } from './fake-thread.ts'

const EVENT = 'order.placed'

/** A hub with one thread that has an event, and gives it back when it has no room for another. */
function givenBack(t: Parameters<typeof hubOf>[0], of: Parameters<typeof eventOf>[1] = {}) {
  let nowMs = 1_000_000
  const { hub } = hubOf(t, { clock: { ...SYSTEM_CLOCK, nowMs: () => nowMs } })
  const thread = fakeThread()
  hub.subscribe(EVENT, 'g', {}, instanceOf(thread))
  hub.publish(eventOf('first', of), null)
  const giveBack = (): void => {
    thread.hasRoom = false
    hub.unbegun(thread.taken.splice(0).map(({ id }) => id))
  }
  const goOn = (): void => {
    thread.hasRoom = true
    hub.subscribersChanged()
  }
  return { hub, thread, giveBack, goOn, pass: (ms: number) => (nowMs += ms) }
}

test('it expires as long as no thread has begun it', (t) => {
  const { hub, thread, giveBack, goOn, pass } = givenBack(t, { ttlMs: 1000 })
  giveBack()
  pass(1001)
  goOn()
  assert.deepEqual([thread.events, hub.pending], [[], 0])
})

test('a lane that dies had not begun what it had not read', (t) => {
  const { hub, thread, pass } = givenBack(t, { ttlMs: 1000 })
  hub.threadGone(thread, new Set(thread.taken.map(({ id }) => id)), null)
  pass(1001)
  const next = fakeThread()
  hub.subscribe(EVENT, 'g', {}, instanceOf(next))
  assert.deepEqual([next.events, hub.pending], [[], 0])
})

test('what was begun goes on after it would have expired, and after its tool was away', (t) => {
  const { hub, thread, goOn, pass } = givenBack(t, { ttlMs: 1000 })
  hub.failed(thread.taken[0]!.id, { message: 'no database', away: true })
  pass(1001)
  for (const { outage } of hub.consumersOf(EVENT)) outage!.isDue = true
  goOn()
  assert.deepEqual(thread.events, ['first', 'first'])
})

test('the next with the same `unique` finds it waiting', (t) => {
  const unique: UniqueEvent = { name: 'u', while: 'waiting', replaces: false }
  const { hub, giveBack } = givenBack(t, { unique })
  giveBack()
  assert.equal(hub.publish(eventOf('second', { unique }), null), 'first')
})

test('who follows it is told, and sees it waiting', (t) => {
  const { hub, thread, giveBack, goOn } = givenBack(t)
  const changes: DeliveryChange[] = []
  hub.watch(new Set(['first']), (change) => changes.push(change))
  giveBack()
  assert.deepEqual(
    changes.map(({ outcome }) => outcome),
    [null],
  )
  const state = () =>
    hub
      .deliveriesOf(new Set(['first']))
      .get('first')!
      .get('g')
  assert.deepEqual(state(), { isRunning: false, attempt: 1 })
  goOn()
  assert.deepEqual([state(), thread.events], [{ isRunning: true, attempt: 1 }, ['first']])
})

test('it goes back to its store while the limit of its share is used up', (t) => {
  const { hub } = hubOf(t)
  const thread = fakeThread()
  hub.subscribe(EVENT, 'g', { limit: [{ max: 1, perMs: 5000, by: 0 }] }, instanceOf(thread))
  const left: string[] = []
  const source: EventSource = {
    isBroker: false,
    async storeDeadLetter() {},
    ended: ({ event }) => void left.push(event.id),
  }
  hub.take(hubEventOf(eventOf('first', { shares: '1["a"]' }), 0, source), [{ ...NEW_SHARE, group: 'g' }])
  assert.deepEqual([thread.events, left], [['first'], []])
  // So short a limit counts it all the same.
  hub.unbegun([thread.taken[0]!.id])
  assert.deepEqual([thread.events, left, hub.pending], [['first'], ['first'], 0])
})

test('a stream forgets that it has begun', () => {
  const told: string[] = []
  const settlements = {
    noteAttempt: (entry: TakenEntry) => {
      entry.hasAttempts = true
      told.push('noted')
    },
    forgetAttempts: () => void told.push('forgotten'),
  } as never
  const entry = new TakenEntry(settlements, {
    group: {},
    id: '1-0',
    chars: 2,
    onGone: null,
    hasAttempts: false,
  } as never)
  entry.hasExpiry = true
  const [fresh, begun] = [{ isBegun: false }, { isBegun: true }] as never[]
  for (let time = 0; time < 2; time++) {
    entry.begun(fresh!)
    entry.unbegun(fresh!)
  }
  entry.begun(fresh!)
  entry.unbegun(begun!)
  assert.deepEqual(told, ['noted', 'forgotten', 'noted', 'forgotten', 'noted'])
})
