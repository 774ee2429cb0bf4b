import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lane } from '../../../src/primary/dispatch/lane.ts'
import { KIND } from '../../../src/transport/frames/frames.ts'
import { Outbox } from '../../../src/transport/rings/outbox.ts'

test('the last acknowledgements of a dead lane are read, and nothing is sent to it any more while they are', () => {
  const seen: [deliveryId: number, state: string][] = []
  const ignored = (): void => {}
  const lane: Lane = new Lane({
    index: 0,
    role: 'regular',
    generation: 0,
    maxInFlight: 16,
    listener: {
      onMessage: ignored,
      onPublish: ignored,
      onStored: ignored,
      onRecord: ignored,
      onDelivered: (id) => seen.push([id, lane.state]),
      onDeliveryReply: ignored,
      onDeliveryFailed: ignored,
      onCall: ignored,
      onLog: ignored,
      onFault: ignored,
    },
  })
  const { outbound, port, bulk } = lane.threadSide
  lane.state = 'ready'
  const thread = new Outbox(outbound, port, bulk)
  const at = thread.begin(4, false)
  thread.words[at >> 2] = 7
  thread.end(4, KIND.DELIVERED, 0)
  assert.deepEqual(lane.dispose(), { requests: [], unreadDeliveries: new Set() })
  assert.deepEqual(seen, [[7, 'dead']])
  thread.close()
})
