import assert from 'node:assert/strict'
import { test } from 'node:test'
import { envelopeOf, frameOf } from '../../../src/runtime/event-store/event-columns.ts'
import type { EventFrame } from '../../../src/transport/frames/event-frame.ts'
import { eventOf } from '../events/fake-thread.ts'

const ID = `evt_${'0'.repeat(32)}`
const FRAME = eventOf('evt_1', { payloadKeys: 'id', timestampMs: 1_700_000_000_000, seq: 7, payload: '{"id":1}' })

test('an envelope is its own event’s, which differs from the one before in one field', () => {
  const others: Partial<EventFrame>[] = [
    {},
    { parentId: 'evt_0' },
    { parentId: 'evt_"0\\' },
    { parentId: ID },
    { parentId: ID, ancestors: ID },
    { parentId: ID, ancestors: `${ID} ${ID}` },
    { requestId: 'of a client: "\u00e9"' },
    { trace: 'span' },
    { emitter: 'shop.Send' },
    { timestampMs: 1_700_000_000_001 },
    { payloadKeys: 'id\0note' },
    {},
  ]
  for (const other of others) {
    const frame = { ...FRAME, ...other }
    const row = { ...frame, envelope: envelopeOf(frame) }
    assert.deepEqual(frameOf(row), frame)
    // The same once more: then it is the last one's.
    assert.equal(envelopeOf({ ...frame, id: 'evt_2' }), row.envelope)
  }
})
