import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, startHeddle } from '../support/heddle.ts'
import { startLoad } from '../support/load.ts'
import { ask, assertFailure, headerOf, jsonOf, RawConnection, requestText } from '../support/raw-client.ts'
import { SERVING } from '../support/shared-process.ts'
import { until } from '../support/until.ts'

const LOAD = fileURLToPath(new URL('../fixtures/lanes', import.meta.url))

interface Small {
  maxInFlight: number
  lanes?: number
  env?: Record<string, string>
}

/** A process whose lanes hold few requests, and are known to be quick. */
async function startSmall(t: TestContext, { maxInFlight, lanes = 1, env = {} }: Small): Promise<Heddle> {
  const heddle = await startHeddle(t, {
    domains: [SERVING, LOAD],
    lanes,
    env: { LANE_MAX_INFLIGHT: String(maxInFlight), ...env },
  })
  const load = startLoad({ port: heddle.port, path: '/thread', keepAlive: lanes * maxInFlight, everyMs: 1 })
  const startedMs = performance.now()
  await until(() => load.answered > 400 && performance.now() - startedMs > 400, 'the lanes are known')
  await load.stop()
  assert.deepEqual(load.failures, [])
  return heddle
}

async function openMany(t: TestContext, port: number, count: number): Promise<RawConnection[]> {
  const connections = await Promise.all(Array.from({ length: count }, () => RawConnection.open(port)))
  t.after(() => {
    for (const connection of connections) connection.drop()
  })
  return connections
}

it('answers all of 3,000 connections though a lane holds 64 requests', async (t) => {
  const heddle = await startSmall(t, { maxInFlight: 64 })
  const load = startLoad({ port: heddle.port, path: '/thread', keepAlive: 3000, everyMs: 20 })
  await until(() => load.answered > 15_000, 'five requests each', 60_000)
  await load.stop()
  assert.deepEqual(load.failures, [])
  assert.equal(await heddle.stop(), 0)
})

it('keeps the bodies of those who wait', async (t) => {
  const heddle = await startSmall(t, { maxInFlight: 4 })
  await Promise.all(
    Array.from({ length: 200 }, async (_, n) => {
      const text = `${n} `.repeat(1 + n * 50)
      const { status, body } = await heddle.json('/json-echo', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ text }),
      })
      assert.equal(status, 200)
      assert.equal(body.text, text)
    }),
  )
  assert.equal(await heddle.stop(), 0)
})

it('refuses at once what a slow handler leaves no room for', async (t) => {
  const heddle = await startHeddle(t, { domains: [LOAD], lanes: 1, env: { LANE_MAX_INFLIGHT: '4' } })
  const accepted = Array.from({ length: 4 }, () => heddle.json('/slow?ms=1000'))
  const finished = Promise.all(accepted)
  await until(async () => (await heddle.fetch('/thread')).status === 503, 'the lane is full')
  const startedMs = performance.now()
  const refused = await Promise.all(Array.from({ length: 20 }, () => ask(heddle.port, 'GET', '/thread')))
  const tookMs = performance.now() - startedMs
  for (const response of refused) {
    assertFailure(response, 503, 'The service is overloaded')
    assert.match(headerOf(response, 'retry-after')!, /^\d+$/)
  }
  assert.ok(tookMs < 500, `${tookMs} ms: they waited`)
  for (const { status } of await finished) assert.equal(status, 200)
  assert.equal(await heddle.stop(), 0)
})

it('refuses those who wait for a lane that turns out to be slow', async (t) => {
  const heddle = await startSmall(t, { maxInFlight: 4 })
  const connections = await openMany(t, heddle.port, 4)
  for (const connection of connections) await connection.send(requestText('GET', '/w/hang/slow'))
  await until(async () => jsonOf(await ask(heddle.port, 'GET', '/p/state/slow:started')).data === 4, 'the lane is full')
  const waiting = await Promise.all(Array.from({ length: 20 }, () => ask(heddle.port, 'GET', '/thread')))
  for (const response of waiting) assertFailure(response, 503, 'The service is overloaded')
  for (const connection of connections) connection.drop()
  await until(async () => (await ask(heddle.port, 'GET', '/thread')).status === 200, 'the lane has room again')
  assert.equal(await heddle.stop(), 0)
})

it('never runs the requests of clients that leave while they wait', async (t) => {
  const heddle = await startSmall(t, { maxInFlight: 4 })
  const hanging = await openMany(t, heddle.port, 4)
  const leaving = await openMany(t, heddle.port, 100)
  for (const connection of hanging) await connection.send(requestText('GET', '/w/hang/leave'))
  await until(
    async () => jsonOf(await ask(heddle.port, 'GET', '/p/state/leave:started')).data === 4,
    'the lane is full',
  )
  await Promise.all(leaving.map((connection) => connection.send(requestText('GET', '/w/count/left'))))
  for (const connection of leaving) connection.drop()
  // What the process has answered to a later connection shows that it has seen them go.
  for (let n = 0; n < 5; n++) await ask(heddle.port, 'GET', '/p/echo')
  for (const connection of hanging) connection.drop()
  const stayed = await until(async () => {
    const response = await ask(heddle.port, 'GET', '/w/count/stayed')
    return response.status === 200 ? response : null
  }, 'the lane has room again')
  assert.equal(jsonOf(stayed).data, 1)
  assert.equal(jsonOf(await ask(heddle.port, 'GET', '/p/state/left:runs')).data, null)
  assert.equal(await heddle.stop(), 0)
})

it('serves those who wait when SIGTERM arrives', async (t) => {
  const heddle = await startSmall(t, { maxInFlight: 4 })
  const load = startLoad({ port: heddle.port, path: '/thread', keepAlive: 300, everyMs: 5, stopsAtClose: true })
  t.after(() => load.stop())
  await until(() => load.answered > 2000, 'a steady load', 30_000)
  const stopped = heddle.stop()
  await until(() => load.closedByAnswer + load.failures.length === 300, 'the last answers', 30_000)
  assert.equal(await stopped, 0)
  assert.deepEqual(load.failures, [])
})

for (const lanes of [1, 2]) {
  it(`loses nobody who waits when one of ${lanes} lanes exits`, async (t) => {
    const heddle = await startSmall(t, { maxInFlight: 4, lanes })
    const load = startLoad({ port: heddle.port, path: '/thread', keepAlive: 200, everyMs: 5 })
    t.after(() => load.stop())
    await until(() => load.answered > 2000, 'a steady load', 30_000)
    const died = await until(async () => {
      const response = await ask(heddle.port, 'GET', '/die/exit')
      return response.status === 500 ? response : null
    }, 'a lane exits')
    assertFailure(died, 500, 'Internal server error')
    const answered = load.answered
    await until(() => load.answered > answered + 2000, 'the load goes on', 30_000)
    await load.stop()
    const unexpected = load.failures.filter((failure) => !/ HTTP\/1\.1 503 [\s\S]*\r\nretry-after: \d/i.test(failure))
    // What was begun is gone with its lane.
    assert.ok(unexpected.length < 4, unexpected.join('\n'))
    for (const failure of unexpected) assert.match(failure, / HTTP\/1\.1 500 /)
    assert.equal(await heddle.stop(), 0)
  })
}
