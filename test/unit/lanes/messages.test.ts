import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KIND } from '../../../src/transport/frames/frames.ts'
import { Outbox } from '../../../src/transport/rings/outbox.ts'
import { laneOf } from '../../support/fake-lane.ts'
import { until } from '../../support/until.ts'

test('a message of a lane that cannot be handled is told, costs nothing else, and the next one is read', async (t) => {
  const faults: unknown[] = []
  const read: string[] = []
  const lane = laneOf(t, {
    listener: {
      // As the primary's own listener does at a message that lacks what it needs.
      onMessage: (_, message) => void read.push((message as unknown as { plugin: { name: string } }).plugin.name),
      onFault: (of, error) => {
        assert.equal(of, lane)
        faults.push(error)
      },
    },
  })
  const { port, bulk } = lane.threadSide
  t.after(() => {
    port.close()
    bulk.close()
  })
  for (const message of [{ type: 'subscribe' }, null, 'text', { type: 'subscribe', plugin: { name: 'shop.Sell' } }])
    port.postMessage(message)
  await until(() => read.length > 0, 'the last message')
  assert.deepEqual(read, ['shop.Sell'])
  assert.equal(faults.length, 3)
  for (const fault of faults) assert.ok(fault instanceof TypeError)
})

test('so is a frame; those behind it in the ring are read', async (t) => {
  const faults: unknown[] = []
  const logs: string[] = []
  const lane = laneOf(t, {
    listener: {
      onLog: (_, { message }) => void logs.push(message.toUpperCase()),
      onFault: (_, error) => void faults.push(error),
    },
  })
  const { outbound, port, bulk } = lane.threadSide
  const thread = new Outbox(outbound, port, bulk)
  t.after(() => {
    thread.close()
    port.close()
    bulk.close()
  })
  for (const json of ['{"message"', '{}', '{"message":"heard"}']) thread.sendText(KIND.LOG, 0, json)
  await until(() => logs.length > 0, 'the last log line')
  assert.deepEqual(logs, ['HEARD'])
  assert.deepEqual(
    faults.map((fault) => (fault as Error).name),
    ['SyntaxError', 'TypeError'],
  )
})

test('what a dead lane left unread and cannot be handled does not stop its burial', (t) => {
  const faults: unknown[] = []
  const lane = laneOf(t, {
    listener: {
      onMessage: () => {
        throw new Error('no such thing')
      },
      onFault: (_, error) => void faults.push(error),
    },
  })
  const { port, bulk } = lane.threadSide
  port.postMessage({ type: 'ready-done' })
  port.close()
  bulk.close()
  assert.deepEqual(lane.dispose().requests, [])
  assert.deepEqual(
    faults.map((fault) => (fault as Error).message),
    ['no such thing'],
  )
})
