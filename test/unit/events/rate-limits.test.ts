/** Limits that processes share, where each share has its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { Delivery } from '../../../src/primary/events/consumer.ts'
import { RateLimits } from '../../../src/primary/events/rate-limits.ts'
import { ShareLine } from '../../../src/primary/events/share-line.ts'

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
    clock: SYSTEM_CLOCK,
    shared: {
      isShared: () => true,
      ask: async (asks) => asks.map(() => ({ granted: ++asked === 1 ? 1 : 0, waitMs: 1000 })),
    },
    roomOf: () => 1,
    freed: () => {},
    aside: () => {},
    changed,
  })
  assert.equal(limits.take(delivery), false)
  await isChanged
  assert.equal(limits.take(delivery), true)
  assert.equal(asked, 1)
  limits.close()
})
