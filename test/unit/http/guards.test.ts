import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { LocalWorker } from '../../../src/primary/dispatch/local-worker.ts'
import type { Exchange } from '../../../src/primary/http/exchange.ts'
import { Listener, type ListenerOptions } from '../../../src/primary/http/listener.ts'
import { Routing } from '../../../src/primary/http/routes.ts'
import { laneOf, routeOf } from '../../support/fake-lane.ts'
import { until } from '../../support/until.ts'

const { HTTP_LISTENER = '' } = process.env
const FAILED = { success: false, error: 'Internal server error' }
const fault = new Error('a fault of our own')
const TOLD = 'A request was not taken in: a fault of our own'

/** The real listener, on a free port, before lanes of the test's own. */
async function listening(t: TestContext, options: Partial<ListenerOptions>) {
  const { settings } = loadSettings({ HTTP_PORT: '0', HTTP_LISTENER, AUTH_SECRET_KEY: 'x'.repeat(32) })
  const routing = new Routing(settings.httpHandlerTimeoutMs)
  const routes = [routeOf('shop.Sell', '/sell'), routeOf('shop.Sell', '/sell', { method: 'POST' })]
  routing.register(laneOf(t, { manifest: { routes } }), () => {})
  const faults: string[] = []
  const listener = new Listener({
    settings,
    routes: routing.table,
    log: (level, message) => level === 'ERROR' && faults.push(message),
    lanes: { send: () => true },
    local: new LocalWorker(() => {}),
    hub: { isCrowded: false },
    health: { isBooting: false },
    ...options,
  })
  t.after(() => listener.close())
  const url = `http://127.0.0.1:${await listener.listen(true)}/sell`
  const ask = async (init: RequestInit = {}) => {
    const response = await fetch(url, init)
    return { status: response.status, body: await response.json() }
  }
  return { ask, faults, url }
}

const broken = (): never => {
  throw fault
}
const answered = (_: unknown, exchange: Exchange): boolean => {
  exchange.answer(200, '', '{}')
  return true
}

test('what is thrown while a request is admitted or its body is handed over ends in 500 and in the log, and the next one is served', async (t) => {
  let isBroken = true
  const { ask, faults } = await listening(t, {
    lanes: { send: (frame, exchange) => (isBroken ? broken() : answered(frame, exchange)) },
  })
  const pieces = async function* () {
    for (let n = 0; n < 3; n++) yield new Uint8Array(1000)
  }
  const chunked = { method: 'POST', body: pieces(), duplex: 'half' } as unknown as RequestInit
  const bodies = ['{}', 'x'.repeat(500_000)].map((body) => ({ method: 'POST', body }))
  for (const init of [{}, ...bodies, chunked]) assert.deepEqual(await ask(init), { status: 500, body: FAILED })
  assert.deepEqual(faults, [TOLD, TOLD, TOLD, TOLD])
  isBroken = false
  for (const init of [{}, bodies[0]!]) assert.equal((await ask(init)).status, 200)
})

test('a queue that is asked whether it is crowded and throws costs one request', async (t) => {
  const { ask, faults } = await listening(t, {
    hub: {
      get isCrowded() {
        return broken()
      },
    },
  })
  for (let n = 1; n <= 3; n++) {
    assert.deepEqual(await ask(), { status: 500, body: FAILED })
    await until(() => faults.length === n, 'the log')
  }
})

test('what is thrown after the answer was given changes nothing of it', async (t) => {
  const { ask, faults } = await listening(t, {
    lanes: {
      send: (frame, exchange) => {
        answered(frame, exchange)
        return broken()
      },
    },
  })
  assert.equal((await ask()).status, 200)
  assert.deepEqual(faults, [TOLD])
})

test('while the event queue is crowded lanes take no requests, which are told when to come again', async (t) => {
  const hub = { isCrowded: true }
  const { ask, url } = await listening(t, { hub, lanes: { send: answered } })
  const refused = await fetch(url)
  const body = await refused.json()
  assert.deepEqual([refused.status, body], [503, { success: false, error: 'The service is overloaded' }])
  assert.match(refused.headers.get('retry-after')!, /^[1-9]\d*$/)
  hub.isCrowded = false
  assert.equal((await ask()).status, 200)
})
