import assert from 'node:assert/strict'
import { test } from 'node:test'
import { steadyMs } from '../../../src/core/schedule/clock.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import type { ClientResponse } from '../../../src/primary/http/library.ts'
import {
  BODY_TIMEOUT_MS,
  STREAMED_BODY_MAX_HELD_BYTES,
  StreamedBodies,
  StreamedBody,
} from '../../../src/primary/http/request-body.ts'

const TIMEOUT_MS = 30_000

let owners = 0

/** A request whose body comes as the test wants, with a handler that reads as the test wants. */
function upload(
  bodies: StreamedBodies,
  expectedBytes: number | null = null,
  limitBytes = 1 << 30,
  owner = { network: `192.0.2.${++owners}`, route: `POST /${owners}` },
) {
  let onData: (chunk: ArrayBuffer, isLast: boolean) => void = () => {}
  const client = { isRead: true, touches: 0, isCutOff: false, leave: () => {} }
  const handler = { bytes: 0, end: null as string | null }
  const read = (isRead: boolean): void => {
    client.isRead = isRead
    client.touches++
  }
  const res = {
    onData: (callback: typeof onData) => {
      onData = callback
    },
    pause: () => read(false),
    resume: () => read(true),
    close: () => {
      client.isCutOff = true
    },
  } as unknown as ClientResponse
  const exchange = {
    route: { timeoutMs: TIMEOUT_MS },
    owner,
    deadlineMs: steadyMs() + TIMEOUT_MS,
    isDone: false,
    isStream: false,
    isLast: false,
    uploadOver: () => {},
    onAbort: (callback: () => void) => {
      client.leave = callback
    },
  }
  const body = new StreamedBody(res, exchange as unknown as Exchange, expectedBytes, limitBytes, true, bodies)
  const sink = {
    bodyPiece: (_id: number, piece: Uint8Array) => {
      handler.bytes += piece.byteLength
    },
    bodyEnded: (_id: number, fault: string) => {
      handler.end = fault
    },
  }
  return {
    client,
    handler,
    exchange,
    body,
    want: (bytes: number) => body.want(bytes, 1, sink),
    send: (bytes: number, isLast = false) => onData(new ArrayBuffer(bytes), isLast),
  }
}

test('a client is read as far as the handler has asked, and from its first question on', () => {
  const bodies = new StreamedBodies()
  const { client, handler, want, send } = upload(bodies)
  assert.equal(client.isRead, false)
  send(500)
  assert.deepEqual([handler.bytes, bodies.memory.held], [0, 500])
  want(1000)
  assert.deepEqual([handler.bytes, bodies.memory.held, client.isRead], [500, 0, true])
  send(200_000)
  assert.deepEqual([handler.bytes, bodies.memory.held, client.isRead], [1000, 199_500, false])
  want(150_000)
  assert.deepEqual([handler.bytes, bodies.memory.held, client.isRead], [151_000, 49_500, false])
  want(50_000)
  assert.deepEqual([handler.bytes, bodies.memory.held, client.isRead], [200_500, 0, true])
  send(0, true)
  assert.deepEqual([handler.end, bodies.open.size], ['', 0])
})

test('a client that comes to a standstill gets 408, and one that waits for the handler does not', () => {
  const bodies = new StreamedBodies()
  const slow = upload(bodies)
  slow.want(1 << 20)
  slow.send(100)
  const waiting = upload(bodies)
  waiting.want(100)
  waiting.send(300)
  bodies.check(steadyMs() + BODY_TIMEOUT_MS - 500)
  assert.equal(slow.handler.end, null)
  bodies.check(steadyMs() + BODY_TIMEOUT_MS + 500)
  assert.deepEqual([slow.handler.end, waiting.handler.end], ['HTTP_REQUEST_TIMEOUT', null])
  assert.equal(slow.client.isRead, false)
  assert.equal(slow.body.abandon(), true, 'the connection is to be closed')
  assert.equal(slow.client.isRead, false)
})

test('the time of the handler runs while bytes wait for it, and not while it waits for the client', () => {
  const { exchange, want, send } = upload(new StreamedBodies())
  const isRunning = () => exchange.deadlineMs > steadyMs() + TIMEOUT_MS - 5_000
  assert.ok(isRunning())
  want(1000)
  assert.equal(exchange.deadlineMs, 0)
  send(400)
  assert.equal(exchange.deadlineMs, 0)
  send(600)
  assert.ok(isRunning())
  exchange.deadlineMs = 1
  want(1000)
  assert.equal(exchange.deadlineMs, 0)
  send(10, true)
  assert.ok(isRunning())
})

test('the library is told each second that a body is under way: it closes connections on which nothing happens', () => {
  const bodies = new StreamedBodies()
  const { client, want } = upload(bodies)
  const beforePaused = client.touches
  bodies.check(steadyMs() + 1_100)
  assert.deepEqual([client.touches - beforePaused, client.isRead], [1, false])
  want(10)
  const before = client.touches
  bodies.check(steadyMs() + 2_200)
  bodies.check(steadyMs() + 2_300)
  assert.deepEqual([client.touches - before, client.isRead], [1, true])
})

test('all bodies together hold no more than a bound before they are read; what is given up is free again', () => {
  const bodies = new StreamedBodies(1_000_000)
  const held = upload(bodies)
  held.send(500_000)
  const refused = upload(bodies)
  refused.send(600_000)
  refused.want(1)
  assert.equal(refused.handler.end, 'HTTP_OVERLOADED')
  assert.equal(refused.body.abandon(), true)
  assert.deepEqual([bodies.memory.held, bodies.open.size], [500_000, 1])
  held.client.leave()
  assert.deepEqual([bodies.memory.held, bodies.open.size], [0, 0])
  held.want(10)
  assert.equal(held.handler.end, null)
})

test('the bodies of one client leave room for others', () => {
  const bodies = new StreamedBodies(1_000_000)
  const crowd = Array.from({ length: 10 }, (_, n) =>
    upload(bodies, null, 1 << 30, { network: '192.0.2.1', route: `POST /${n}` }),
  )
  for (const { want, send } of crowd) {
    want(1)
    send(100_001)
  }
  assert.equal(crowd.filter(({ handler }) => handler.end === 'HTTP_OVERLOADED').length, 5)
  const other = upload(bodies)
  other.send(100_000)
  other.want(100_000)
  other.send(0, true)
  assert.deepEqual([other.handler.bytes, other.handler.end], [100_000, ''])
  for (const { client } of crowd) client.leave()
  assert.equal(bodies.memory.held, 0)
})

test('one body holds no more than a bound, whatever the library reads', () => {
  const bodies = new StreamedBodies()
  const { client, handler, want, send } = upload(bodies)
  want(100)
  let sent = 0
  for (; handler.end === null && sent < 1000; sent++) send(500_000)
  assert.deepEqual([sent, handler.end], [Math.ceil(STREAMED_BODY_MAX_HELD_BYTES / 500_000), 'HTTP_OVERLOADED'])
  assert.deepEqual([bodies.memory.held, client.isRead], [0, false])
})

test('a body is over its limit with the first byte beyond, and one of another length than was told is cut off', () => {
  const bodies = new StreamedBodies()
  const over = upload(bodies, null, 1000)
  over.want(5000)
  over.send(1000)
  assert.equal(over.handler.end, null)
  over.send(1)
  assert.deepEqual([over.handler.bytes, over.handler.end], [1000, 'HTTP_BODY_TOO_LARGE'])
  const short = upload(bodies, 1000)
  short.want(5000)
  short.send(999, true)
  assert.deepEqual([short.client.isCutOff, short.handler.end], [true, null])
})
