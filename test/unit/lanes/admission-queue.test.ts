import assert from 'node:assert/strict'
import { it } from 'node:test'
import {
  AdmissionQueue,
  WAITING_MAX_BYTES,
  WAITING_MAX_REQUESTS,
} from '../../../src/primary/dispatch/admission-queue.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import { RequestFrame, readRequest } from '../../../src/transport/frames/request-frame.ts'
import type { RawBuffer } from '../../../src/transport/memory/spsc-ring.ts'

const NOW_MS = 1_000_000

const frameOf = (body: Uint8Array | null): RequestFrame => new RequestFrame(0, 0, 2, 0, 5, 0, 0, 'id/path', body)

/** As the listener's: whoever it is placed with learns that it has expired. */
class Waiter {
  readonly deadlineMs: number
  expiries = 0
  leave: () => void = () => {}

  constructor(deadlineMs = 0) {
    this.deadlineMs = deadlineMs
  }

  assignTo(worker: { cancelRequest(id: number): void }, id: number): void {
    this.leave = () => worker.cancelRequest(id)
  }

  expire(): void {
    this.expiries++
    this.leave()
  }
}

const enter = (queue: AdmissionQueue, waiter: Waiter, body: Uint8Array | null = null): boolean =>
  queue.tryAdd(frameOf(body), waiter as unknown as Exchange)

function idsOf(queue: AdmissionQueue): number[] {
  const ids: number[] = []
  for (let id = queue.first; id !== -1; id = queue.after(id)) ids.push(id)
  return ids
}

it('has room for a bounded number of requests', () => {
  const queue = new AdmissionQueue()
  const waiters = Array.from({ length: WAITING_MAX_REQUESTS }, () => new Waiter())
  for (const waiter of waiters) assert.ok(enter(queue, waiter))
  assert.equal(queue.free, 0)
  assert.equal(enter(queue, new Waiter()), false)
  waiters[5]!.leave()
  waiters[5]!.leave()
  assert.equal(queue.free, 1)
  assert.ok(enter(queue, new Waiter()))
})

it('has room for a bounded number of bytes, and has it back from those who leave', () => {
  const queue = new AdmissionQueue()
  const half = new Uint8Array(WAITING_MAX_BYTES / 2 - 100)
  const waiters = [new Waiter(), new Waiter()]
  for (const waiter of waiters) assert.ok(enter(queue, waiter, half))
  assert.equal(enter(queue, new Waiter(), new Uint8Array(1000)), false)
  assert.ok(enter(queue, new Waiter()), 'a small one')
  waiters[0]!.leave()
  assert.ok(enter(queue, new Waiter(), half))
})

it('copies a body: its memory is lent', () => {
  const queue = new AdmissionQueue()
  const lent = Uint8Array.of(1, 2, 3)
  enter(queue, new Waiter(), lent)
  lent.fill(0)
  const memory = new ArrayBuffer(queue.lengthOf(queue.first) + 7)
  const words = new Int32Array(memory, 0, memory.byteLength >> 2)
  queue.copyTo(queue.first, words, 0)
  const { body } = readRequest({ bytes: Buffer.from(memory) as RawBuffer, words }, 0)
  assert.deepEqual([...body!], [1, 2, 3])
})

it('tells those whose time is up once, and keeps the others in their order', () => {
  const queue = new AdmissionQueue()
  const waiters = [0, NOW_MS - 1, NOW_MS + 1, NOW_MS, 0].map((deadlineMs) => new Waiter(deadlineMs))
  for (const waiter of waiters) enter(queue, waiter)
  queue.expire(NOW_MS)
  queue.expire(NOW_MS)
  assert.deepEqual(
    waiters.map(({ expiries }) => expiries),
    [0, 1, 0, 1, 0],
  )
  assert.deepEqual(
    idsOf(queue).map((id) => queue.exchangeOf(id).deadlineMs),
    [0, NOW_MS + 1, 0],
  )
})

it('keeps the order over many turns of its slots, whoever leaves from the middle', () => {
  const queue = new AdmissionQueue()
  const waiting: { number: number; waiter: Waiter }[] = []
  // Always the same numbers, from one run to the next.
  let random = 1
  const below = (max: number): number => {
    random = (random * 48_271) % 2_147_483_647
    return random % max
  }
  for (let number = 0; number < 50_000; number++) {
    const waiter = new Waiter(number + 1)
    assert.ok(enter(queue, waiter))
    waiting.push({ number, waiter })
    if (waiting.length < 500) continue
    const at = below(3) === 0 ? below(waiting.length) : 0
    if (at === 0) queue.remove(queue.first)
    else waiting[at]!.waiter.leave()
    waiting.splice(at, 1)
    assert.equal(queue.exchangeOf(queue.first).deadlineMs, waiting[0]!.number + 1)
  }
  const left = idsOf(queue).map((id) => queue.exchangeOf(id).deadlineMs - 1)
  assert.deepEqual(
    left,
    waiting.map(({ number }) => number),
  )
  for (const { waiter } of waiting) waiter.leave()
  assert.deepEqual([queue.size, queue.first, queue.free], [0, -1, WAITING_MAX_REQUESTS])
})

it('gives no slot away behind one that waits for long', () => {
  const queue = new AdmissionQueue()
  const oldest = new Waiter(7)
  enter(queue, oldest)
  let entered = 0
  for (;;) {
    const waiter = new Waiter()
    if (!enter(queue, waiter)) break
    waiter.leave()
    entered++
  }
  assert.equal(entered, 2 * WAITING_MAX_REQUESTS - 1)
  assert.deepEqual([queue.size, queue.free], [1, 0])
  assert.equal(queue.exchangeOf(queue.first).deadlineMs, 7)
  oldest.leave()
  assert.ok(enter(queue, new Waiter()))
})
