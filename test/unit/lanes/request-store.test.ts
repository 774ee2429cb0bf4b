import assert from 'node:assert/strict'
import { it, test } from 'node:test'
import { RequestStore } from '../../../src/primary/dispatch/admission-queue.ts'
import { RequestSlots } from '../../../src/primary/dispatch/request-slots.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import { RequestFrame, readRequest } from '../../../src/transport/frames/request-frame.ts'
import type { RawBuffer } from '../../../src/transport/memory/spsc-ring.ts'

const frameOf = (value: string, body: Uint8Array | null = null): RequestFrame =>
  new RequestFrame(7, 2, 2, 0, 5, 2, 0, `id/patha=${value}`, body)

const FRAMES = [
  frameOf('x'),
  frameOf('ünï→codé'),
  frameOf('', Uint8Array.of(1, 2, 3)),
  frameOf('y'.repeat(15_000)),
  frameOf('', new Uint8Array(1_000_000).fill(9)),
  frameOf('', new Uint8Array(0)),
  frameOf('z'),
]

/** What a lane reads: bodies as numbers, to be compared. */
function plain({ isBeyondAscii: _, body, ...rest }: RequestFrame) {
  return { ...rest, body: body && [...body] }
}

const memory = new ArrayBuffer(2 << 20)

const copy = { bytes: Buffer.from(memory) as RawBuffer, words: new Int32Array(memory) }

function read(store: RequestStore, slot: number): RequestFrame {
  store.copyTo(slot, copy.words, 8)
  return readRequest(copy, 8)
}

it('gives each request back as it was, and says which are beyond ASCII', () => {
  const store = new RequestStore(FRAMES.length)
  for (const [slot, frame] of FRAMES.entries()) store.put(slot, frame)
  assert.deepEqual(
    FRAMES.map((_, slot) => plain(read(store, slot))),
    FRAMES.map(plain),
  )
  assert.deepEqual(
    FRAMES.flatMap(({ isBeyondAscii }, n) => (isBeyondAscii ? [n] : [])),
    [1],
  )
})

it('uses the memory of requests that have left again, and never that of one that is there', () => {
  const slots = 1001
  const store = new RequestStore(slots + 1)
  store.put(slots, frameOf('kept'))
  const before = process.memoryUsage().arrayBuffers
  for (let n = 0; n < 20_000; n++) {
    const slot = n % slots
    if (n >= slots) {
      assert.match(read(store, slot).text, new RegExp(`^id/patha=${n - slots} `))
      store.remove(slot)
    }
    store.put(slot, frameOf(`${n} ${'h'.repeat(600)}`))
  }
  assert.equal(read(store, slots).text, 'id/patha=kept')
  // All of them together take 12 MB.
  const taken = process.memoryUsage().arrayBuffers - before
  assert.ok(taken < 3_000_000, `${taken} bytes`)
})

const exchange = () => ({ route: null }) as unknown as Exchange

const HOUR_MS = 3_600_000

function place(slots: RequestSlots, of = exchange()): number {
  const id = slots.nextId()
  slots.put(id, of, -1)
  return id
}

test('a request that was given up keeps its place until its handler has settled', () => {
  const slots = new RequestSlots(2)
  const waiting = exchange()
  const first = place(slots, waiting)
  assert.equal(slots.giveUp(first), waiting)
  assert.deepEqual([slots.count, slots.free], [0, 1])
  assert.equal(slots.get(first), null)
  assert.equal(slots.giveUp(first), null)
  // The late answer.
  assert.equal(slots.remove(first), null)
  assert.equal(slots.free, 2)
  assert.equal(slots.remove(first), null)
  assert.equal(slots.free, 2)
})

test('a stream that was given up keeps none', () => {
  const slots = new RequestSlots(1)
  const stream = place(slots)
  slots.beginStream(stream)
  slots.giveUp(stream)
  assert.equal(slots.free, 1)
})

test('a lane is worn out when handlers that were given up long ago hold half of its places', () => {
  const slots = new RequestSlots(2)
  slots.giveUp(place(slots))
  assert.equal(slots.isWornOut(Date.now()), false)
  assert.equal(slots.isWornOut(Date.now() + HOUR_MS), true)
})

test('the answer to a request that was given up does not reach the next one in its slot', () => {
  const slots = new RequestSlots(1)
  const [first, second] = [exchange(), exchange()]
  const given = place(slots, first)
  assert.equal(slots.remove(given), first)
  const next = place(slots, second)
  assert.equal(given & 0xffff, next & 0xffff, 'it is the same slot')
  assert.deepEqual([slots.get(given), slots.remove(given)], [null, null])
  assert.equal(slots.remove(next), second)
})
