/** Limits that processes share, where each share has its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Clock, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { Delivery } from '../../../src/primary/events/consumer.ts'
import { RateLimits } from '../../../src/primary/events/rate-limits.ts'
import { ShareLine } from '../../../src/primary/events/share-line.ts'

/** What no test here is about. */
const PARTS = { roomOf: () => 1, freed: () => {}, aside: () => {}, changed: () => {} }
const clock: Clock = { ...SYSTEM_CLOCK, appMs: () => 0, steadyMs: () => 0 }

test('a delivery in quarantine begins with what was granted, though none of its share waits in the queue', async () => {
  const share = '1["a"]'
  const consumer = {
    limits: [{ max: 1, perMs: 1000, name: 'n', by: 0 }],
    queue: { waiting: new ShareLine<Delivery>(() => true) },
  }
  const delivery = { consumer, share } as unknown as Delivery
  let asked = 0
  let changed = (): void => {}
  const isChanged = new Promise<void>((resolve) => {
    changed = resolve
  })
  const limits = new RateLimits({
    clock,
    shared: {
      isShared: () => true,
      giveBack: async () => {},
      ask: async (asks) => asks.map(() => ({ granted: ++asked === 1 ? 1 : 0, waitMs: 1000 })),
    },
    ...PARTS,
    changed,
  })
  assert.equal(limits.take(delivery), false)
  await isChanged
  assert.equal(limits.take(delivery), true)
  assert.equal(asked, 1)
  limits.close()
})

test('when a thread was too late, the next may be twice as late, and what was let before it changes nothing', () => {
  const consumer = { limits: [{ max: 5, perMs: 1000, name: 'n', by: null }], queue: { waiting: { size: 9 } } }
  const asked: number[] = []
  const limits = new RateLimits({
    clock: { ...clock, turn: (run) => run() },
    shared: {
      isShared: () => true,
      giveBack: async () => {},
      ask: async (asks) =>
        asks.map(({ lateMs }) => {
          asked.push(lateMs)
          return { granted: 1, waitMs: 0 }
        }),
    },
    ...PARTS,
  })
  const delivery = { consumer, share: '', beginBy: 0 } as unknown as Delivery
  limits.unbegun(delivery)
  delivery.beginBy = 1
  limits.unbegun(delivery)
  limits.unbegun(delivery)
  assert.equal(limits.take(delivery), false)
  assert.deepEqual(asked, [100])
  limits.close()
})

test('where an answer takes longer than what it grants is good for, the next is good for longer', async () => {
  const consumer = { limits: [{ max: 5, perMs: 1000, name: 'n', by: null }], queue: { waiting: { size: 9 } } }
  let nowMs = 0
  const asked: number[] = []
  const limits = new RateLimits({
    clock: { ...clock, appMs: () => nowMs },
    shared: {
      isShared: () => true,
      giveBack: async () => {},
      ask: async (asks) => {
        nowMs += 60
        return asks.map(({ lateMs }) => {
          asked.push(lateMs)
          return { granted: 1, waitMs: 0 }
        })
      },
    },
    ...PARTS,
  })
  const delivery = { consumer, share: '', beginBy: 0 } as unknown as Delivery
  for (let ask = 0; ask < 2; ask++) {
    assert.equal(limits.take(delivery), false)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(limits.take(delivery), true)
  assert.deepEqual(asked, [50, 100])
  limits.close()
})

test('what a lane gives back has not used up its limit', () => {
  const consumer = { limits: [{ max: 1, perMs: 86_400_000, name: 'n', by: null }], queue: { waiting: { size: 1 } } }
  const limits = new RateLimits({
    clock,
    shared: null,
    ...PARTS,
  })
  const delivery = { consumer, share: '', beginBy: 0 } as unknown as Delivery
  assert.equal(limits.take(delivery), true)
  limits.unbegun(delivery)
  assert.equal(limits.take(delivery), true)
  assert.equal(limits.take(delivery), false)
  limits.close()
})

/** A line whose shares all have one that waits, and how often that was looked at. */
class FullLine extends ShareLine<Delivery> {
  looks = 0
  constructor() {
    super(() => true)
  }
  override sizeOf(): number {
    this.looks++
    return 1
  }
}

const byShare = (waiting: ShareLine<Delivery>) => ({
  limits: [{ max: 1, perMs: 60_000, name: 'n', by: 0 }],
  queue: { waiting },
})
const shareOf = (consumer: object, n: number): Delivery =>
  ({ consumer, share: `1["${n}"]`, beginBy: 0 }) as unknown as Delivery

test('no more shares ask than there is room for, and the others after them', async () => {
  const consumer = byShare(new FullLine())
  const asked: number[] = []
  const limits = new RateLimits({
    clock,
    shared: {
      isShared: () => true,
      giveBack: async () => {},
      ask: async (asks) => {
        asked.push(asks.length)
        return asks.map(() => ({ granted: 1, waitMs: 0 }))
      },
    },
    ...PARTS,
    roomOf: () => 2,
  })
  for (let n = 0; n < 5; n++) assert.equal(limits.take(shareOf(consumer, n)), false)
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  assert.deepEqual(asked, [2])
  for (let n = 0; n < 5; n++) assert.equal(limits.take(shareOf(consumer, n)), n < 2)
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  assert.deepEqual(asked, [2, 2])
  limits.close()
})

test('with very many shares that are all waited for, a new one does not look at each of them', () => {
  const SHARES = 12_000
  const line = new FullLine()
  const consumer = byShare(line)
  const limits = new RateLimits({ clock, shared: null, ...PARTS })
  for (let n = 0; n < SHARES; n++) limits.take(shareOf(consumer, n))
  assert.ok(line.looks < 5 * SHARES, `${line.looks} looks`)
  limits.close()
})
