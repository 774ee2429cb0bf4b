import assert from 'node:assert/strict'
import { test } from 'node:test'
import { steadyMs } from '../../../src/core/schedule/clock.ts'
import { DEAF_MS } from '../../../src/primary/dispatch/request-slots.ts'
import { ClientSocket, SOCKETS_MAX_UNHANDLED_BYTES } from '../../../src/primary/http/client-socket.ts'
import { Exchange } from '../../../src/primary/http/exchange.ts'
import type { ClientResponse, LibrarySocket, SocketUserData } from '../../../src/primary/http/library.ts'
import { MEMORY_SHARE_OF_ADDRESS } from '../../../src/primary/http/places.ts'
import { MESSAGE_OVERHEAD_BYTES, messageWeight } from '../../../src/transport/frames/frames.ts'
import { laneOf } from '../../support/fake-lane.ts'

const MIB = 1 << 20

function endOf(closes: unknown[][], busySinceMs = 0, unhandledBytes = 0, network = ''): ClientSocket {
  return {
    opening: { label: `GET /talk${network}`, plugin: 'talk.Talk', requestId: 'req_1', network },
    busySinceMs,
    unhandledBytes,
    send: () => {},
    handled: () => {},
    close: (...given: unknown[]) => closes.push(['close', ...given]),
    closeWhenIdle: (...given: unknown[]) => closes.push(['leave', ...given]),
  } as unknown as ClientSocket
}

const exchangeOf = (end: ClientSocket | null): Exchange => ({ acceptSocket: () => end }) as unknown as Exchange

test('the messages of a lane that does not handle any are bounded for all of its sockets together', (t) => {
  const { sockets } = laneOf(t)
  const [crowd, other] = ['192.0.2.1', '192.0.2.2']
  for (const [number, network] of [crowd, crowd, other, other].entries())
    sockets.accept(exchangeOf(endOf([], 0, 0, network)), number, '')
  const message = new Uint8Array(MIB)
  const take = (numbers: readonly number[]): number => {
    let taken = 0
    while (sockets.socketMessage(numbers[taken % 2]!, message, true)) taken++
    return taken
  }
  const fitting = (bytes: number) => Math.floor((bytes - 2 * MESSAGE_OVERHEAD_BYTES) / (MIB + MESSAGE_OVERHEAD_BYTES))
  const ofCrowd = take([0, 1])
  assert.equal(ofCrowd, fitting(MEMORY_SHARE_OF_ADDRESS * SOCKETS_MAX_UNHANDLED_BYTES), 'one client')
  assert.equal(take([2, 3]), ofCrowd, 'another one')
  for (let n = 0; n < ofCrowd; n++) sockets.handled(n % 2, messageWeight(MIB))
  assert.equal(take([0, 1]), ofCrowd, 'as many as before')
})

test('a lane is worn out when sockets that were closed long ago hold half of the room for messages', (t) => {
  const { sockets } = laneOf(t)
  const message = new Uint8Array(MIB)
  const weight = messageWeight(MIB)
  for (const number of [1, 2]) {
    sockets.accept(exchangeOf(endOf([], Date.now(), messageWeight(0) + 20 * weight, `192.0.2.${number}`)), number, '')
    for (let n = 0; n < 20; n++) assert.equal(sockets.socketMessage(number, message, true), true)
  }
  const nowMs = steadyMs()
  sockets.socketClosed(1, 1006, '')
  assert.equal(sockets.isWornOut(nowMs + 2 * DEAF_MS), false, 'one of them is open')
  sockets.socketClosed(2, 1006, '')
  assert.equal(sockets.isWornOut(nowMs + DEAF_MS - 1), false, 'they may still settle')
  assert.equal(sockets.isWornOut(nowMs + 2 * DEAF_MS), true)
  t.mock.method(performance, 'now', () => nowMs - performance.timeOrigin + DEAF_MS)
  sockets.handled(1, weight)
  assert.equal(sockets.isWornOut(nowMs + DEAF_MS + 1), false, 'one goes on')
})

test('a lane that leaves tells its sockets, and those that come meanwhile', (t) => {
  const { sockets } = laneOf(t)
  const closes: unknown[][] = []
  sockets.accept(exchangeOf(endOf(closes)), 1, '')
  sockets.closeWhenIdle(1012, 'bye')
  sockets.accept(exchangeOf(endOf(closes)), 2, '')
  assert.deepEqual(closes, [
    ['leave', 1012, 'bye'],
    ['leave', 1012, 'bye'],
  ])
  assert.equal(sockets.size, 2)
})

test('a lane that is gone has closed its sockets, and still tells what they were at', (t) => {
  const lane = laneOf(t)
  const closes: unknown[][] = []
  lane.sockets.accept(exchangeOf(endOf(closes, Date.now() - 50)), 1, '')
  lane.sockets.accept(exchangeOf(endOf(closes)), 2, '')
  lane.sockets.accept(exchangeOf(null), 3, '')
  assert.equal(lane.sockets.size, 2)
  lane.dispose()
  assert.deepEqual(closes, [
    ['close', 1012, 'service restart'],
    ['close', 1012, 'service restart'],
  ])
  const [work, ...others] = lane.sockets.workInFlight()
  assert.deepEqual([work?.kind, work?.name, work?.plugin, others], ['request', 'GET /talk', 'talk.Talk', []])
  assert.equal(lane.sockets.size, 0)
})

test('a message that is refused is none of those that wait to be handled', () => {
  for (const isTaken of [true, false]) {
    const worker = { ...WORKER, socketMessage: () => isTaken }
    const client = new ClientSocket({ label: '', plugin: '', requestId: '', network: '' }, worker, 1, 8 * MIB, ignored)
    const message = new Uint8Array(3 * MIB)
    client.received(message, true)
    client.received(message, true)
    const taken = isTaken ? messageWeight(message.byteLength) : 0
    assert.equal(client.unhandledBytes, messageWeight(0) + taken)
  }
})

const ignored = (): void => {}

const WORKER = { socketMessage: () => true, socketFlushed: ignored, socketClosed: ignored }

/** A handshake that is accepted, with what the library does then. */
function accepted(onUpgrade: (user: SocketUserData) => void): unknown {
  const res = {
    onAborted: ignored,
    writeStatus: () => res,
    writeHeader: () => res,
    upgrade: onUpgrade,
  }
  const exchange = new Exchange(res as unknown as ClientResponse, 'req_1', 'GET', '/talk', null, '', [])
  exchange.handshake = { key: '', context: { own: {}, cork: (write) => write() }, limitBytes: 1024 }
  return exchange.acceptSocket(WORKER, 1, '')
}

test('a socket that ends in the middle of its handshake is one that nobody has', () => {
  const ws = {} as LibrarySocket
  const whole = accepted(({ socket }) => socket.opened(ws))
  assert.notEqual(whole, null)
  const cut = accepted(({ socket }) => {
    socket.opened(ws)
    socket.closed(1006, '')
  })
  assert.equal(cut, null)
  assert.equal(accepted(ignored), null)
})
