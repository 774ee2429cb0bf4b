import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Dispatcher } from '../../../src/primary/dispatch/dispatcher.ts'
import { HeldPlaces } from '../../../src/primary/dispatch/held-places.ts'
import type { Lane } from '../../../src/primary/dispatch/lane.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import { RoutePace } from '../../../src/primary/http/routes.ts'
import { RequestFrame, readRequest } from '../../../src/transport/frames/request-frame.ts'
import { RingConsumer } from '../../../src/transport/memory/spsc-ring.ts'
import { Inbox } from '../../../src/transport/rings/inbox.ts'
import { laneOf } from '../../support/fake-lane.ts'

const frame = (route = 0): RequestFrame => new RequestFrame(route, 0, 2, 0, 5, 0, 0, 'id/path', null)

const ROUTE = { number: 0, zone: 'application', pace: { isQuick: false } }

/** A request, and what became of it. */
function exchangeOf() {
  const seen = { at: null as unknown, failure: '' }
  const exchange = {
    deadlineMs: 0,
    noteNetwork: () => {},
    assignTo: (worker: unknown) => {
      seen.at = worker
    },
    fail: (code: string) => {
      seen.failure = code
    },
  } as unknown as Exchange
  return { seen, exchange }
}

/** Between lanes; no fault is expected. */
function dispatcherOf(...lanes: Lane[]): Dispatcher {
  const dispatcher = new Dispatcher((error) => {
    throw error
  })
  dispatcher.setLanes(lanes)
  return dispatcher
}

function hosting(t: TestContext): Lane {
  const lane = laneOf(t)
  lane.servesRoute[0] = 1
  lane.drainRate.speedWhenFull = () => 'fast'
  return lane
}

test('what is thrown while a request that waited is served costs that one, and the others are served', (t) => {
  const faults: unknown[] = []
  const dispatcher = new Dispatcher((error) => void faults.push(error))
  const lane = hosting(t)
  const send = lane.sendWaiting.bind(lane)
  lane.sendRequest = () => -1
  dispatcher.setLanes([lane])
  const waiting = [exchangeOf(), exchangeOf(), exchangeOf()]
  for (const { exchange } of waiting) assert.equal(dispatcher.send(frame(), exchange), true)
  assert.equal(dispatcher.waiting, 3)
  const fault = new Error('broken')
  lane.sendWaiting = (queue, id, exchange) => {
    if (exchange === waiting[0]!.exchange) throw fault
    return send(queue, id, exchange)
  }
  lane.onRoom()
  assert.equal(dispatcher.waiting, 0)
  assert.deepEqual(faults, [fault])
  assert.deepEqual(
    waiting.map(({ seen }) => seen.failure),
    ['HTTP_INTERNAL', '', ''],
  )
  assert.deepEqual(
    waiting.slice(1).map(({ seen }) => seen.at === lane),
    [true, true],
  )
})

test('a lane gets what has waited as it would have got it at once', (t) => {
  const lane = hosting(t)
  const send = lane.sendRequest.bind(lane)
  lane.sendRequest = () => -1
  lane.sendWaiting = () => -1
  const dispatcher = dispatcherOf(lane)
  const bodies = [null, new Uint8Array(0), Uint8Array.of(1, 2, 3), new Uint8Array(100_000).fill(9)]
  const frames = bodies.map((body, n) => new RequestFrame(0, 0, 2, 0, 6, 0, 0, `id/päth${n}`, body))
  for (const each of frames) assert.equal(dispatcher.send(each, exchangeOf().exchange), true)
  assert.equal(dispatcher.waiting, frames.length)
  // As its class has it.
  Reflect.deleteProperty(lane, 'sendWaiting')
  lane.onRoom()
  assert.equal(dispatcher.waiting, 0)
  lane.sendRequest = send
  for (const each of frames) dispatcher.send(each, exchangeOf().exchange)
  const seen: unknown[] = []
  const { inbound, bulk } = lane.threadSide
  const onFrame = (kind: number, _: number, at: number) => seen.push([kind, readRequest(inbox, at)])
  const inbox: Inbox = new Inbox(inbound, bulk, onFrame, { beginBatch() {}, endBatch() {} })
  inbox.drainAll()
  assert.equal(seen.length, 2 * frames.length)
  assert.deepEqual(seen.slice(0, frames.length), seen.slice(frames.length))
})

test('a request that waits for a lane has its own time, whatever the clock says', async (t) => {
  const lane = hosting(t)
  const send = lane.sendWaiting.bind(lane)
  lane.sendRequest = () => -1
  lane.sendWaiting = () => -1
  const dispatcher = dispatcherOf(lane)
  const { seen, exchange } = exchangeOf()
  let hasExpired = false
  Object.assign(exchange, { deadlineMs: Date.now() + 60_000, expire: () => (hasExpired = true) })
  assert.equal(dispatcher.send(frame(), exchange), true)
  const { now } = Date
  t.mock.method(Date, 'now', () => now() + 3_600_000)
  // Long enough to be looked at several times.
  await new Promise((resolve) => setTimeout(resolve, 200))
  assert.deepEqual([dispatcher.waiting, seen.failure, hasExpired], [1, '', false])
  lane.sendWaiting = send
  lane.onRoom()
  assert.equal(dispatcher.waiting, 0)
  assert.equal(seen.at, lane)
})

test('nobody waits behind the requests of a client that holds as much as one may', (t) => {
  const lane = hosting(t)
  const dispatcher = new Dispatcher((error) => assert.fail(String(error)), false, new HeldPlaces(undefined, 2))
  dispatcher.setLanes([lane])
  const from = (network: string) => {
    const { seen, exchange } = exchangeOf()
    return { seen, exchange: Object.assign(exchange, { network, route: { ...ROUTE } }) }
  }
  const send = lane.sendRequest.bind(lane)
  const crowd = Array.from({ length: 1000 }, () => from('192.0.2.1'))
  for (const { exchange } of crowd) assert.equal(dispatcher.send(frame(), exchange), true)
  assert.equal(dispatcher.waiting, crowd.length - 2)
  lane.sendRequest = () => -1
  const other = from('192.0.2.2')
  assert.equal(dispatcher.send(frame(), other.exchange), true)
  assert.equal(dispatcher.waiting, crowd.length - 1)
  lane.sendRequest = send
  lane.onRoom()
  assert.equal(other.seen.at, lane)
  assert.equal(dispatcher.waiting, crowd.length - 2)
  assert.deepEqual(new Set(crowd.map(({ seen }) => seen.failure)), new Set(['']))
})

test('nothing is given back to a lane that is about to end', (t) => {
  const [ended, other] = [hosting(t), hosting(t)]
  // The other one does not have the route, so that no room of its own is of use.
  other.servesRoute[0] = 0
  const dispatcher = dispatcherOf(ended, other)
  const waiting = [exchangeOf(), exchangeOf()]
  for (const { exchange } of waiting) assert.equal(dispatcher.send(frame(), exchange), true)
  assert.equal(ended.requestsInFlight, 2)
  ended.state = 'draining'
  assert.equal(dispatcher.rescue(ended), 2)
  assert.equal(ended.requestsInFlight, 0)
  assert.deepEqual(
    waiting.map(({ seen }) => seen.failure),
    ['HTTP_OVERLOADED', 'HTTP_OVERLOADED'],
  )
  assert.equal(dispatcher.send(frame(), exchangeOf().exchange), false, 'nor is anything new')
})

/** The pace of a route whose answers have all taken this long. */
function paceOf(ms: number): RoutePace {
  const pace = new RoutePace()
  for (let n = 0; n < 200; n++) pace.answered(ms)
  return pace
}

const QUICK = paceOf(0.1)
const SLOW = paceOf(3)

/** Two lanes that read what they get at once, and answer nothing. */
function twoLanes(t: TestContext) {
  const lanes = [laneOf(t), laneOf(t, { index: 1 })]
  for (const lane of lanes) lane.servesRoute[0] = 1
  const dispatcher = dispatcherOf(...lanes)
  const rings = lanes.map(({ threadSide }) => new RingConsumer(threadSide.inbound))
  const send = (count: number, pace: RoutePace): void => {
    for (let n = 0; n < count; n++) {
      assert.equal(dispatcher.send(frame(), Object.assign(exchangeOf().exchange, { route: { pace } })), true)
      for (const ring of rings) ring.drain(() => {}, 100)
    }
  }
  return { lanes, send }
}

const shares = (lanes: Lane[]): number[] => lanes.map(({ requestsInFlight }) => requestsInFlight)

test('a route is quick when its answers come at once on average; one slow answer does not change that for long', () => {
  const pace = new RoutePace()
  assert.equal(pace.isQuick, false)
  for (let n = 0; n < 100; n++) pace.answered(0.1)
  assert.equal(pace.isQuick, true)
  for (let n = 0; n < 20; n++) pace.answered(2)
  assert.equal(pace.isQuick, false)
  for (let n = 0; n < 100; n++) pace.answered(0.1)
  pace.answered(60_000)
  for (let n = 0; n < 20; n++) pace.answered(0.1)
  assert.equal(pace.isQuick, true)
})

test('quick requests go to one lane while they are few, and the others sleep', (t) => {
  const { lanes, send } = twoLanes(t)
  send(10, QUICK)
  assert.deepEqual(shares(lanes), [10, 0])
})

test('requests that take longer are shared, and so are those of a route that is not known', (t) => {
  const { lanes, send } = twoLanes(t)
  send(6, SLOW)
  assert.deepEqual(shares(lanes), [3, 3])
  send(4, new RoutePace())
  assert.deepEqual(shares(lanes), [5, 5])
})

test('a quick request does not wait behind one that takes longer', (t) => {
  const { lanes, send } = twoLanes(t)
  send(1, SLOW)
  send(1, QUICK)
  assert.deepEqual(shares(lanes), [1, 1])
})
