import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type EventSource, hubEventOf, type Share } from '../../../src/primary/events/consumer.ts'
import type { Hub } from '../../../src/primary/events/hub.ts'
import { POISON_DEATHS } from '../../../src/primary/events/quarantine.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'
import { eventOf, fakeThread, hubOf, instanceOf } from './fake-thread.ts'

/** Of an event that the log has: notes what becomes of its delivery. */
const sourceOf = (ends: string[], name: string, more: Partial<EventSource> = {}): EventSource => ({
  isBroker: false,
  async storeDeadLetter() {
    ends.push(`${name} is a letter`)
  },
  ended: (_, isDone) => void ends.push(`${name} ${isDone ? 'is done' : 'is left'}`),
  ...more,
})

/** Gives the hub an event of the log. @param share what is left of its delivery; all of it when left out */
function take(hub: Hub, frame: EventFrame, source: EventSource, share?: Partial<Share>): void {
  const first = { group: 'group', attempt: 1, deaths: 0, dueMs: 0, error: '' }
  hub.take(hubEventOf(frame, 0, source), share === undefined ? null : [{ ...first, ...share }])
}

test('what becomes a letter at once, because processes have died of it, waits for the turn of its key', async (t) => {
  const { hub } = hubOf(t)
  const lane = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(lane))
  const ends: string[] = []
  const event = (id: string) => eventOf(id, { key: 'k' })
  take(hub, event('first'), sourceOf(ends, 'first'))
  take(hub, event('second'), sourceOf(ends, 'second'))
  take(hub, event('bad'), sourceOf(ends, 'bad'), { deaths: POISON_DEATHS })
  take(hub, event('last'), sourceOf(ends, 'last'))
  await new Promise(setImmediate)
  assert.deepEqual(lane.events, ['first'], 'one at a time')
  hub.delivered(lane.taken[0]!.id)
  assert.deepEqual(lane.events, ['first', 'second'])
  hub.delivered(lane.taken[1]!.id)
  await new Promise(setImmediate)
  assert.deepEqual(lane.events, ['first', 'second', 'last'])
  hub.delivered(lane.taken[2]!.id)
  assert.deepEqual(ends, ['first is done', 'second is done', 'bad is a letter', 'bad is done', 'last is done'])
})

test('a delivery is over only when its letter is stored, however long that takes', async (t) => {
  const { hub } = hubOf(t)
  const lane = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(lane))
  const ends: string[] = []
  let stored = (): void => {}
  const storeDeadLetter = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      stored = resolve
    })
    ends.push('first is a letter')
  }
  take(hub, eventOf('first', { key: 'k' }), sourceOf(ends, 'first', { storeDeadLetter }))
  take(hub, eventOf('second', { key: 'k' }), sourceOf(ends, 'second'))
  hub.failed(lane.taken[0]!.id, { message: 'never' })
  await new Promise(setImmediate)
  assert.deepEqual([ends, lane.events], [[], ['first']])
  stored()
  await new Promise(setImmediate)
  assert.deepEqual(
    [ends, lane.events],
    [
      ['first is a letter', 'first is done'],
      ['first', 'second'],
    ],
  )
})

test('a retry that the log has taken begins there alone', async (t) => {
  for (const [isTaken, wanted] of [
    [true, ['first']],
    [false, ['first', 'first']],
  ] as const) {
    const { hub } = hubOf(t)
    const lane = fakeThread()
    hub.subscribe('order.placed', 'group', { retries: 3, backoffMs: 1 }, instanceOf(lane))
    take(hub, eventOf('first'), sourceOf([], 'first', { retrying: () => isTaken }))
    hub.failed(lane.taken[0]!.id, { message: 'not now' })
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.deepEqual(lane.events, wanted)
    assert.equal(hub.pending, isTaken ? 0 : 1)
  }
})
