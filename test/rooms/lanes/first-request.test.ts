import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { primaryInbox } from '../../../src/lane/primary-frames.ts'
import { KIND } from '../../../src/transport/frames/frames.ts'
import { RequestFrame, requestMaxBytes, writeRequest } from '../../../src/transport/frames/request-frame.ts'
import { createRing } from '../../../src/transport/memory/spsc-ring.ts'
import type { LaneInit } from '../../../src/transport/messages.ts'
import { Outbox } from '../../../src/transport/rings/outbox.ts'
import { until } from '../../support/until.ts'

const FRAME = new RequestFrame(0, 0, 2, 0, 5, 0, 0, 'id/path', null)

test('what the primary sent before the first request is handled before it, however early the ring is read', async (t) => {
  const seen: string[] = []
  const ring = createRing(65_536)
  const control = new MessageChannel()
  const bulk = new MessageChannel()
  t.after(() => {
    control.port1.close()
    bulk.port1.close()
  })
  const part = { handle: () => seen.push('request'), isSound: () => true }
  const answers = { beginBatch: () => {}, endBatch: () => {} }
  const inbox = primaryInbox({ inbound: ring, bulk: bulk.port2 } as LaneInit, answers as Outbox, {
    ...({ requests: part } as unknown as Parameters<typeof primaryInbox>[2]),
    catchUp: () => seen.push('caught up'),
  })
  const outbox = new Outbox(ring, control.port1, bulk.port1)
  for (const id of [1, 2]) {
    const frame = outbox.begin(KIND.REQUEST, id, requestMaxBytes(FRAME))!
    frame.send(writeRequest(frame, frame.at, FRAME))
  }
  inbox.drain()
  // Where the thread had no core meanwhile, the next turn reads the rest.
  await until(() => seen.length >= 3, 'both requests')
  assert.deepEqual(seen, ['caught up', 'request', 'request'])
})
