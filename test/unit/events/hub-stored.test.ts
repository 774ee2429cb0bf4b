import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredShare, StoredShares } from '../../../src/primary/events/consumer.ts'
import { POISON_DEATHS } from '../../../src/primary/events/quarantine.ts'
import { eventOf, fakeThread, hubOf, instanceOf } from './fake-thread.ts'

/** What the log knows of an event with one delivery. */
function shareOf(ends: string[], name: string, share: Partial<StoredShare> = {}): StoredShares {
  const source: StoredShare['source'] = {
    isBroker: false,
    begun() {},
    async storeDeadLetter() {
      ends.push(`${name} is a letter`)
    },
    ended: (isDone) => void ends.push(`${name} ${isDone ? 'is done' : 'is left'}`),
  }
  return { isRecorded: false, shareOf: () => ({ source, attempt: 1, deaths: 0, dueMs: 0, ...share }) }
}

test('what becomes a letter at once, because processes have died of it, waits for the turn of its key', async (t) => {
  const { hub } = hubOf(t)
  const lane = fakeThread()
  hub.subscribe('order.placed', 'group', {}, instanceOf(lane))
  const ends: string[] = []
  const event = (id: string) => eventOf(id, { key: 'k' })
  hub.deliverStored(event('first'), 0, null, shareOf(ends, 'first'))
  hub.deliverStored(event('second'), 0, null, shareOf(ends, 'second'))
  hub.deliverStored(event('bad'), 0, null, shareOf(ends, 'bad', { deaths: POISON_DEATHS }))
  hub.deliverStored(event('last'), 0, null, shareOf(ends, 'last'))
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
  const shares = shareOf(ends, 'first')
  const { source, ...share } = shares.shareOf(undefined as never)!
  let stored = (): void => {}
  const storeDeadLetter = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      stored = resolve
    })
    ends.push('first is a letter')
  }
  const slow = { ...shares, shareOf: () => ({ ...share, source: { ...source, storeDeadLetter } }) }
  hub.deliverStored(eventOf('first', { key: 'k' }), 0, null, slow)
  hub.deliverStored(eventOf('second', { key: 'k' }), 0, null, shareOf(ends, 'second'))
  hub.deliveryFailed(lane.taken[0]!.id, { message: 'never' })
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

test('at the end of the process nothing of a key begins that stands behind what is left in the log', (t) => {
  const { hub } = hubOf(t)
  const lane = fakeThread()
  hub.subscribe('order.placed', 'group', { retries: 3, backoffMs: 60_000 }, instanceOf(lane))
  const ends: string[] = []
  const event = (id: string) => eventOf(id, { key: 'k' })
  hub.deliverStored(event('first'), 0, null, shareOf(ends, 'first'))
  // Another process has tried it, too.
  hub.deliverStored(event('second'), 0, null, shareOf(ends, 'second', { attempt: 2 }))
  hub.deliveryFailed(lane.taken[0]!.id, { message: 'not now' })
  hub.returnDelayed()
  assert.deepEqual(lane.events, ['first'])
  assert.deepEqual(ends, ['first is left', 'second is left'])
})

test('a retry that the log has taken begins there alone', async (t) => {
  for (const [isTaken, wanted] of [
    [true, ['first']],
    [false, ['first', 'first']],
  ] as const) {
    const { hub } = hubOf(t)
    const lane = fakeThread()
    hub.subscribe('order.placed', 'group', { retries: 3, backoffMs: 1 }, instanceOf(lane))
    const shares = shareOf([], 'first')
    const { source, ...share } = shares.shareOf(undefined as never)!
    const retrying = (): boolean => isTaken
    hub.deliverStored(eventOf('first'), 0, null, {
      ...shares,
      shareOf: () => ({ ...share, source: { ...source, retrying } }),
    })
    hub.deliveryFailed(lane.taken[0]!.id, { message: 'not now' })
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.deepEqual(lane.events, wanted)
    assert.equal(hub.pending, isTaken ? 0 : 1)
  }
})
