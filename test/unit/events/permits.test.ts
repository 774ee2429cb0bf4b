/** Permits of shares, over several processes and over a reload. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Clock, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { Consumer, Delivery } from '../../../src/primary/events/consumer.ts'
import { type PermitAsk, Permits } from '../../../src/primary/events/permits.ts'
import { ShareLine } from '../../../src/primary/events/share-line.ts'

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

function consumerOf(max: number, waiting: ShareLine<Delivery>): Consumer {
  return { event: 'e', group: 'g', permits: { max, by: 0 }, queue: { waiting } } as unknown as Consumer
}
const shareOf = (n: number): string => `1["${n}"]`
const deliveryOf = (consumer: Consumer, n: number): Delivery =>
  ({ consumer, share: shareOf(n), permit: '' }) as unknown as Delivery

test('what the new subscriber of a name has waiting goes on when the old one has ended', () => {
  const permits = new Permits({ clock: SYSTEM_CLOCK, shared: null, roomOf: () => 9, changed: () => {} })
  const old = consumerOf(1, new ShareLine(() => true))
  const running = deliveryOf(old, 1)
  assert.equal(permits.take(running), true)
  const line: ShareLine<Delivery> = new ShareLine((share) => permits.mayTry(next, share))
  const next = consumerOf(1, line)
  const waiting = deliveryOf(next, 1)
  line.push(waiting)
  assert.equal(line.peek(), undefined)
  permits.back(running)
  assert.equal(line.peek(), waiting)
  permits.close()
})

test('all that wait for permits ask again together, and for no more than there is room for', async () => {
  const timers: (() => void)[] = []
  const clock = { ...SYSTEM_CLOCK, after: (_: number, run: () => void) => timers.push(run) } as unknown as Clock
  const asked: PermitAsk[] = []
  let changes = 0
  const line = new ShareLine<Delivery>(() => true)
  const consumer = consumerOf(50, line)
  const permits = new Permits({
    clock,
    shared: {
      isShared: () => true,
      ask: async (asks) => {
        asked.push(...asks)
        return asks.map(() => 0)
      },
      tell: async () => {},
    },
    roomOf: () => 3,
    changed: () => changes++,
  })
  const POOLS = 60
  for (let n = 0; n < POOLS; n++) {
    for (let each = 0; each < 10; each++) line.push(deliveryOf(consumer, n))
    assert.equal(permits.take(deliveryOf(consumer, n)), false)
  }
  await nextTurn()
  assert.deepEqual([asked.length, Math.max(...asked.map(({ wanted }) => wanted))], [POOLS, 3])
  const before = changes
  assert.equal(timers.length, 1)
  timers[0]!()
  assert.equal(changes, before + 1)
})
