import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Dispatcher } from '../../../src/primary/dispatch/dispatcher.ts'
import type { Lane } from '../../../src/primary/dispatch/lane.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import { RoutePace } from '../../../src/primary/http/routes.ts'
import { RequestFrame } from '../../../src/transport/frames/request-frame.ts'
import { RingConsumer } from '../../../src/transport/memory/spsc-ring.ts'
import { laneOf } from '../../support/fake-lane.ts'

const frame = (): RequestFrame => new RequestFrame(0, 0, 2, 0, 5, 0, 0, 'id/path', null)

/** The pace of a route whose answers have all taken this long. */
function paceOf(ms: number): RoutePace {
  const pace = new RoutePace()
  for (let n = 0; n < 200; n++) pace.answered(ms)
  return pace
}

const QUICK = paceOf(0.1)
const SLOW = paceOf(3)

const exchangeOf = (pace: RoutePace): Exchange =>
  ({ deadlineMs: 0, route: { pace }, assignTo: () => {}, fail: () => {} }) as unknown as Exchange

/** Two lanes that read what they get at once, and answer nothing. */
function twoLanes(t: TestContext) {
  const lanes = [laneOf(t), laneOf(t, { index: 1 })]
  const dispatcher = new Dispatcher((error) => {
    throw error
  })
  for (const lane of lanes) lane.servesRoute[0] = 1
  dispatcher.setLanes(lanes)
  const rings = lanes.map(({ threadSide }) => new RingConsumer(threadSide.inbound))
  const send = (count: number, pace: RoutePace): void => {
    for (let n = 0; n < count; n++) {
      assert.equal(dispatcher.send(frame(), exchangeOf(pace)), true)
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
