import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createRing,
  maxFrameBytes,
  RING_DATA_BYTE,
  RING_HEAD_WORD,
  RING_TAIL_WORD,
  RingConsumer,
  RingProducer,
} from '../../../src/transport/memory/spsc-ring.ts'
import { fillBody, isBody } from '../../rooms/shm/body.ts'
import { SEED, seededRandom } from '../../support/random.ts'

const CAPACITY = 1024

function ringAt(position: number, capacity = CAPACITY) {
  const memory = createRing(capacity)
  const control = new Int32Array(memory, 0, RING_DATA_BYTE >> 2)
  control[RING_HEAD_WORD] = position | 0
  control[RING_TAIL_WORD] = position | 0
  return { memory, producer: new RingProducer(memory), consumer: new RingConsumer(memory) }
}

interface Frame {
  number: number
  length: number
  position: number
  state: 'waiting' | 'read' | 'taken back'
}

/** Runs a random program against a plain list of frames. */
function runProgram(seed: number, startPosition: number, steps: number): void {
  const random = seededRandom(seed)
  const { producer, consumer } = ringAt(startPosition)
  const frames: Frame[] = []
  const open: Frame[] = []
  let refusals = 0
  const note = `seed ${seed}, start ${startPosition}`
  const expectNext = (kind: number, number: number, at: number, length: number): void => {
    const next = open.shift()
    assert.ok(next !== undefined, `a frame that nobody wrote, ${note}`)
    assert.deepEqual([number, kind, length], [next.number, next.number & 0xff, next.length], note)
    assert.ok(isBody(consumer.bytes, at, length, number), `the body of frame ${number} is damaged, ${note}`)
    next.state = 'read'
  }
  for (let step = 0; step < steps; step++) {
    const dice = random(10)
    if (dice < 5) {
      const reserved = random(random(4) === 0 ? maxFrameBytes(CAPACITY) + 1 : 100)
      const at = producer.reserve(reserved)
      if (at < 0) {
        refusals++
        assert.ok(producer.usedBytes > 0, `an empty ring refused ${reserved} bytes, ${note}`)
        continue
      }
      assert.equal(at % 8, 0)
      // A writer that changes its mind: the reservation costs nothing.
      if (random(8) === 0) continue
      const length = random(reserved + 1)
      const number = frames.length
      fillBody(producer.bytes, at, length, number)
      const frame: Frame = {
        number,
        length,
        position: producer.commit(length, number & 0xff, number),
        state: 'waiting',
      }
      frames.push(frame)
      open.push(frame)
    } else if (dice < 8) {
      const bound = random(6)
      let read = 0
      const passed = consumer.drain((...frame) => {
        read++
        expectNext(...frame)
      }, bound)
      assert.ok(read <= passed && passed <= bound, note)
      if (passed < bound) assert.deepEqual(open, [], `frames were left although the bound was not reached, ${note}`)
    } else if (frames.length > 0) {
      const frame = frames[random(2) === 0 ? random(frames.length) : Math.max(0, frames.length - 1 - random(8))]!
      const body = producer.takeBack(frame.position)
      assert.equal(body !== null, frame.state === 'waiting', `frame ${frame.number} was ${frame.state}, ${note}`)
      if (body === null) continue
      assert.equal(body.length, frame.length)
      assert.ok(isBody(body, 0, frame.length, frame.number), note)
      frame.state = 'taken back'
      open.splice(open.indexOf(frame), 1)
    }
  }
  while (consumer.drain(expectNext, 100) > 0);
  assert.deepEqual(open, [], note)
  assert.equal(producer.usedBytes, 0, note)
  assert.equal(consumer.pending, false)
  assert.ok(refusals > 0 && frames.length > steps / 20, `the program was too tame, ${note}`)
}

test('the ring does what a list of frames does, whatever is written, taken back and read', (t) => {
  t.diagnostic(`SEED=${SEED}`)
  for (let round = 0; round < 20; round++) runProgram(SEED + round, 0, 3000)
})

test('the byte counters go over 2^32 without a trace', (t) => {
  t.diagnostic(`SEED=${SEED}`)
  for (let round = 0; round < 20; round++) {
    const start = 2 ** 32 - 8 * (1 + seededRandom(SEED + round)(4000))
    runProgram(SEED + 1000 + round, start, 3000)
  }
})

test('a frame that does not fit before the end goes to the beginning', () => {
  const { producer, consumer } = ringAt(0)
  const write = (length: number, number: number): void => {
    const at = producer.reserve(length)
    assert.ok(at >= 0)
    fillBody(producer.bytes, at, length, number)
    producer.commit(length, 1, number)
  }
  const read: number[] = []
  const readAll = (): void => {
    consumer.drain((_, number, at, length) => {
      assert.ok(isBody(consumer.bytes, at, length, number))
      read.push(number)
    }, 100)
  }
  write(400, 1)
  write(400, 2)
  readAll()
  // 832 bytes in: 192 are left, too few for 300.
  write(300, 3)
  readAll()
  assert.deepEqual(read, [1, 2, 3])
  assert.equal(producer.usedBytes, 0)
})

test('the largest frame fits into an empty ring wherever the counters stand', () => {
  for (let position = 0; position < CAPACITY; position += 8) {
    const { producer } = ringAt(position)
    assert.ok(producer.reserve(maxFrameBytes(CAPACITY)) >= 0, `at ${position}`)
  }
})

test('a position of long ago is never mistaken for a frame of now', () => {
  // After 2^31 bytes, and again after 2^32, a 32-bit position of an old frame looks like one that is still to come.
  const { producer, consumer } = ringAt(0, 1 << 20)
  const first = producer.reserve(64)
  producer.bytes.fill(0, first, first + 64)
  const old = producer.commit(64, 1, 1)
  consumer.drain(() => {}, 10)
  const body = maxFrameBytes(1 << 20)
  const frameBytes = body + 16
  for (let passed = 0; passed < 2 ** 32 + 2 ** 31; passed += frameBytes) {
    assert.ok(producer.reserve(body) >= 0)
    producer.commit(body, 1, 2)
    if (passed % (64 * frameBytes) === 0) assert.equal(producer.takeBack(old), null, `after ${passed} bytes`)
    consumer.drain(() => {}, 10)
    assert.equal(producer.takeBack(old), null, `after ${passed} bytes`)
  }
})

test('the doorbell is rung once until the consumer has gone to sleep', () => {
  const { producer, consumer } = ringAt(0)
  const write = (): void => {
    producer.reserve(8)
    producer.commit(8, 1, 1)
  }
  const drain = (): number => consumer.drain(() => {}, 100)
  write()
  assert.equal(producer.ring(), true, 'the first one wakes')
  write()
  assert.equal(producer.ring(), false, 'it is awake already')
  assert.equal(drain(), 2)
  write()
  assert.equal(producer.ring(), false, 'it has not said that it sleeps')
  assert.equal(consumer.sleep(), false, 'a frame came just before: nobody will ring for it')
  assert.equal(drain(), 1)
  assert.equal(consumer.sleep(), true)
  write()
  assert.equal(producer.ring(), true, 'it sleeps')
  assert.equal(producer.ring(), false)
})

test('a reader that throws loses its own frame and no other', () => {
  const { producer, consumer } = ringAt(0)
  for (let number = 1; number <= 3; number++) {
    producer.reserve(8)
    producer.commit(8, 1, number)
  }
  const read: number[] = []
  const drain = () =>
    consumer.drain((_, number) => {
      if (number === 2) throw new Error('of its own')
      read.push(number)
    }, 100)
  assert.throws(drain, /of its own/)
  drain()
  assert.deepEqual(read, [1, 3])
})

test('a ring has a power of two for its size', () => {
  for (const bytes of [0, 512, 1000, 1536, -1024]) assert.throws(() => createRing(bytes), RangeError)
})
