import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Handler } from '../../../src/contracts/http.ts'
import { LocalWorker } from '../../../src/primary/dispatch/local-worker.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import type { RequestEffects } from '../../../src/runtime/endpoint/idempotency.ts'
import { RequestFrame } from '../../../src/transport/frames/request-frame.ts'
import { createFlightRecorder, FlightReader, FlightRecorder } from '../../../src/transport/memory/flight-recorder.ts'

/** The worker of the primary's own routes, with one route, and what asks it. */
function serving(handler: Handler) {
  const flight = createFlightRecorder()
  const worker = new LocalWorker((...fault) => assert.fail(fault.join(' ')), new FlightRecorder(flight))
  worker.server.effects = { timeoutMs: 1000 } as RequestEffects
  const owner = { name: 'shop.Sell', instance: undefined }
  worker.server.add(0, { kind: 'endpoint', owner, method: 'GET', path: '/sell', options: {}, handler })
  const answers: unknown[] = []
  const request = { label: 'GET /sell', plugin: 'shop.Sell', requestId: 'id', deadlineMs: 0 }
  const ask = (network = '192.0.2.1', number = 0, zone = 'application'): boolean => {
    const exchange = {
      ...request,
      network,
      route: { number, zone, pace: { isQuick: false } },
      noteNetwork() {},
      assignTo() {},
    }
    const frame = new RequestFrame(0, 0, 2, 0, 5, 0, 0, 'id/sell', null)
    return worker.send(frame, { ...exchange, reply: (reply: unknown) => answers.push(reply) } as unknown as Exchange)
  }
  return { worker, ask, answers, steps: () => new FlightReader(flight).steps() }
}

test('a handler of the primary keeps its place until it settles, though nobody waits for it any more', async () => {
  const pending: (() => void)[] = []
  const { worker, ask, answers } = serving(() => new Promise<void>((resolve) => pending.push(resolve)))
  let taken = 0
  const askAny = () => ask(`192.0.2.${taken % 4}`, taken % 4)
  while (askAny()) taken++
  assert.ok(taken >= 1000, String(taken))
  // The first that came has the first slot, and is the first of its generation.
  worker.cancelRequest(0)
  assert.deepEqual([worker.inFlight, worker.works().length, askAny()], [taken - 1, taken - 1, false])
  pending[0]!()
  await new Promise(setImmediate)
  assert.equal(askAny(), true)
  assert.deepEqual(answers, [], 'nobody is answered')
  assert.equal(worker.inFlight, taken)
})

test('one client, or one route, leaves places of the primary to others', async () => {
  for (const [crowd, other] of [
    [(n) => ['192.0.2.1', n], ['192.0.2.2', 0]],
    [(n) => [`192.0.2.${n}`, 0], ['192.0.2.1', 1]],
  ] as [(n: number) => [string, number], [string, number]][]) {
    const pending: (() => void)[] = []
    const { ask } = serving(() => new Promise<void>((resolve) => pending.push(resolve)))
    let taken = 0
    while (ask(...crowd(taken % 4))) taken++
    assert.ok(taken >= 1000, String(taken))
    assert.equal(ask(...other), true, 'another one')
    assert.equal(ask('', 0, 'health'), true, 'a page of the runtime')
    for (const settle of pending) settle()
    await new Promise(setImmediate)
  }
})

test('an answer of the primary that is there at once ends its step', () => {
  const { ask, answers, steps, worker } = serving(() => ({ success: true }))
  assert.equal(ask(), true)
  assert.deepEqual(
    steps().map(({ id, failed, endedMs }) => [id, failed, endedMs !== 0]),
    [['id', false, true]],
  )
  assert.deepEqual([answers.length, worker.inFlight], [1, 0])
})
