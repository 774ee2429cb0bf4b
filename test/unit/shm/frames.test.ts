import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type EventFrame, eventMaxBytes, readEvent, writeEvent } from '../../../src/transport/frames/event-frame.ts'
import {
  RequestFrame,
  readRequest,
  requestMaxBytes,
  writeRequest,
} from '../../../src/transport/frames/request-frame.ts'
import {
  CONNECTION_BUDGET_BYTES,
  ConnectionBudget,
  giveBackOfThread,
} from '../../../src/transport/memory/connection-budget.ts'
import { createRing, type RawBuffer, RingConsumer, RingProducer } from '../../../src/transport/memory/spsc-ring.ts'
import { eventOf } from '../events/fake-thread.ts'

function frameMemory(byteLength: number) {
  const memory = new SharedArrayBuffer(byteLength)
  return {
    bytes: Buffer.from(memory) as unknown as RawBuffer,
    words: new Int32Array(memory),
    doubles: new Float64Array(memory),
  }
}

test('the body of a request is a copy: the next frame is written over where it stood', () => {
  const body = Buffer.from('the body that the client has sent')
  const frame = new RequestFrame(1, 2, 0, 0, 2, 0, 0, '/a', body)
  const memory = frameMemory(8 * Math.ceil(requestMaxBytes(frame) / 8))
  writeRequest(memory, 0, frame)
  const read = readRequest(memory, 0)
  memory.bytes.fill(0xff)
  assert.equal(Buffer.from(read.body!).toString(), body.toString())
})

test('an event has the key that it was written with: none, an empty one, or any other', () => {
  for (const key of [null, '', 'k', 'k'.repeat(200)]) {
    const event: EventFrame = eventOf('e', { key, trace: '00-trace', payloadKeys: 'id' })
    const bytes = eventMaxBytes(event, 'bytes')
    const memory = frameMemory(8 * Math.ceil(bytes / 8))
    const length = writeEvent(memory, 0, event, 'bytes')
    const read = readEvent(memory, 0, length, 'bytes')
    assert.deepEqual([read.key, read.trace, read.payloadKeys], [key, '00-trace', 'id'])
  }
})

test('an event has the parent and the ancestors that it was written with, beside any key', () => {
  for (const key of [null, '', 'k'.repeat(512)])
    for (const parentId of [null, 'evt_0'])
      for (const ancestors of ['', 'evt_1', 'evt_1 '.repeat(92)]) {
        const event: EventFrame = eventOf('e', { key, parentId, ancestors, requestId: 'r' })
        const memory = frameMemory(8 * Math.ceil(eventMaxBytes(event, 'text') / 8))
        const read = readEvent(memory, 0, writeEvent(memory, 0, event, 'text'), 'text')
        for (const field of ['key', 'parentId', 'ancestors', 'event', 'emitter', 'requestId'] as const)
          assert.equal(read[field], event[field], field)
      }
})

test('what the other side has begun to read is not taken back, and nothing is read that was', () => {
  const memory = createRing(1024)
  const producer = new RingProducer(memory)
  const consumer = new RingConsumer(memory)
  for (const id of [1, 2, 3]) {
    producer.reserve(8)
    producer.commit(8, 7, id)
  }
  const read: number[] = []
  const takenBack: number[] = []
  consumer.drain((_, id) => {
    read.push(id)
    producer.takeBackAll((kind, each) => takenBack.push(kind * 10 + each))
  }, 10)
  assert.deepEqual([read, takenBack], [[1], [72, 73]])
})

function budgets(limit: number, ...threads: number[]) {
  const memory = new SharedArrayBuffer(CONNECTION_BUDGET_BYTES)
  return { memory, of: threads.map((thread) => new ConnectionBudget(memory, limit, thread + 1)) }
}

test('all threads together keep to the limit, and what one gives another may take', () => {
  const { of } = budgets(3, 0, 1)
  const [one, two] = of as [ConnectionBudget, ConnectionBudget]
  assert.deepEqual([one.tryTake(), one.tryTake(), two.tryTake()], [true, true, true])
  assert.deepEqual([one.tryTake(), two.tryTake()], [false, false])
  one.give()
  assert.deepEqual([two.tryTake(), one.tryTake()], [true, false])
})

test('a thread that has none gets one beyond the limit', () => {
  const { of } = budgets(2, 0, 1, 2)
  const [one, two, three] = of as [ConnectionBudget, ConnectionBudget, ConnectionBudget]
  assert.deepEqual([one.tryTake(), one.tryTake(), two.tryTake(), three.tryTake()], [true, true, true, true])
  assert.deepEqual([two.tryTake(), three.tryTake()], [false, false])
})

test('what a thread had that has ended is free, and its place too', () => {
  const { memory, of } = budgets(2, 0, 1)
  const [one, two] = of as [ConnectionBudget, ConnectionBudget]
  assert.deepEqual([one.tryTake(), two.tryTake(), one.tryTake()], [true, true, false])
  giveBackOfThread(memory, 1)
  assert.equal(one.tryTake(), true)
  for (let thread = 2; thread < 2000; thread++) {
    new ConnectionBudget(memory, 2, thread + 1).tryTake()
    giveBackOfThread(memory, thread)
  }
  assert.equal(one.tryTake(), false)
})
