import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { KIND } from '../../../src/transport/frames/frames.ts'
import { createRing } from '../../../src/transport/memory/spsc-ring.ts'
import { Inbox } from '../../../src/transport/rings/inbox.ts'
import { Outbox } from '../../../src/transport/rings/outbox.ts'

/** An inbox with so many frames to read, each of which takes so long. */
function inboxOf(t: TestContext, frames: number, frameMs: number) {
  const memory = createRing(1 << 20)
  const doorbell = new MessageChannel()
  const bulk = new MessageChannel()
  const outbox = new Outbox(memory, doorbell.port1, bulk.port1)
  for (let id = 0; id < frames; id++) outbox.sendText(KIND.LOG, id, 'frame')
  outbox.close()
  const seen: number[] = []
  const onFrame = (_kind: number, id: number): void => {
    const endMs = performance.now() + frameMs
    while (performance.now() < endMs);
    seen.push(id)
  }
  let batches = 0
  const inbox = new Inbox(memory, bulk.port2, onFrame, { beginBatch: () => batches++, endBatch() {} })
  t.after(() => {
    for (const port of [doorbell.port1, bulk.port1]) port.close()
  })
  return { inbox, seen, batches: () => batches }
}

test('a turn of the loop ends soon though each of its frames takes long: timers get their turn', async (t) => {
  const frames = 100
  const { inbox, seen } = inboxOf(t, frames, 2)
  const atTimers: number[] = []
  const timer = setInterval(() => atTimers.push(seen.length), 1)
  t.after(() => clearInterval(timer))
  inbox.drain()
  // 1 + 2 + 4 frames, after which 10 ms are over or nearly: at most 8 more.
  assert.ok(seen.length <= 15, `${seen.length} frames in the first turn`)
  while (seen.length < frames) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(
    seen,
    Array.from({ length: frames }, (_, id) => id),
  )
  const gaps = atTimers.slice(1).map((at, n) => at - atTimers[n]!)
  assert.ok(Math.max(...gaps) <= 15, `frames between timers: ${gaps}`)
})

test('frames that take no time are read in few turns', async (t) => {
  const { inbox, seen, batches } = inboxOf(t, 500, 0)
  inbox.drain()
  // Where the machine takes the core away for longer than a turn lasts, the rest is read in the next one.
  while (seen.length < 500) await new Promise((resolve) => setImmediate(resolve))
  assert.ok(batches() < 50, `${batches()} turns`)
})
