import assert from 'node:assert/strict'
import { it } from 'node:test'
import { AdmissionQueue, WAITING_MAX_BYTES, WAITING_MAX_REQUESTS } from '../../src/primary/dispatch/admission-queue.ts'
import type { Exchange } from '../../src/primary/http/exchange.ts'
import { type RequestFrame, readRequest } from '../../src/transport/frames/request-frame.ts'

const NOW_MS = 1_000_000

function frameOf(body: Uint8Array | null): RequestFrame {
  const text = 'id/path'
  return {
    routeNumber: 0,
    methodNumber: 0,
    requestIdLength: 2,
    ipLength: 0,
    pathLength: 5,
    queryLength: 0,
    traceLength: 0,
    text,
    body,
  }
}

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
  const bodies = [...queue].map(([, { request }]) => [...readRequest(request.chunk, request.at).body!])
  assert.deepEqual(bodies, [[1, 2, 3]])
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
    [...queue].map(([, { exchange }]) => exchange.deadlineMs),
    [0, NOW_MS + 1, 0],
  )
})
