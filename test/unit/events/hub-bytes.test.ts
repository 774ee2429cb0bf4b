import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CHANCE, SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import { Hub } from '../../../src/primary/events/hub.ts'
import { HUB_MAX_PENDING_BYTES } from '../../../src/primary/events/queue-budget.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'

const event = (id: string, payload: string): EventFrame => ({
  id,
  parentId: null,
  event: 'big.one',
  emitter: 'test.Emitter',
  requestId: 'req_1',
  key: null,
  trace: '',
  payloadKeys: 'text',
  timestampMs: Date.now(),
  delayMs: 0,
  ttlMs: 0,
  seq: 0,
  subscriber: 0,
  attempt: 0,
  payload,
})

test('the queue is bounded in bytes too, and takes more as soon as something is delivered', () => {
  const hub = new Hub({
    clock: SYSTEM_CLOCK,
    chance: SYSTEM_CHANCE,
    maxQueue: 100_000,
    onQuarantine: () => {},
    onQuarantineUsed: () => {},
    log: () => {},
  })
  const taken: number[] = []
  const thread = {
    isQuarantine: false,
    isStill: false,
    heldMs: 0,
    deliveriesInFlight: 0,
    hasRoom: true,
    send: (id: number) => taken.push(id) > 0,
    abandon: () => {},
  }
  hub.subscribe(
    'big.one',
    'group',
    {},
    {
      thread,
      subscriberIndex: 0,
      plugin: 'test.Slow',
      identity: 'test.Slow.handle',
      isPaused: false,
    },
  )
  const payload = 'x'.repeat(1 << 20)
  const fits = HUB_MAX_PENDING_BYTES / payload.length
  for (let n = 0; n < fits; n++) hub.publish(event(`evt_${n}`, payload), null)
  assert.throws(() => hub.publish(event('evt_more', payload), null), { code: 'EVENT_BUS_FULL' })
  hub.delivered(taken[0]!)
  hub.publish(event('evt_more', payload), null)
  assert.equal(hub.pending, fits)
  hub.close()
})
