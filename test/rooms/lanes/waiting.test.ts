import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { startLoad } from '../../support/load.ts'
import { ask, assertFailure, jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'
import { shareService } from '../../support/shared-service.ts'
import { fixtureDomains } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const LOAD = fixtureDomains('lanes')

type Owner = Parameters<typeof startHeddle>[0]

interface Small {
  maxInFlight: number
  lanes?: number
  env?: Record<string, string>
}

/** A process whose lanes hold few requests, and are known to be quick. */
async function startSmall(t: Owner, { maxInFlight, lanes = 1, env = {} }: Small): Promise<Heddle> {
  const heddle = await startHeddle(t, {
    domains: [SERVING, LOAD],
    lanes,
    env: { LANE_MAX_INFLIGHT: String(maxInFlight), ...env },
  })
  await becomeKnown(heddle, lanes * maxInFlight)
  return heddle
}

/** Asks so much for so long that the lanes are known to be quick. */
async function becomeKnown(heddle: Heddle, clients: number): Promise<void> {
  const load = startLoad({ port: heddle.port, path: '/thread', keepAlive: clients, everyMs: 1 })
  const startedMs = performance.now()
  await until(() => load.answered > 400 && performance.now() - startedMs > 400, 'the lanes are known')
  await load.stop()
  assert.deepEqual(load.failures, [])
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
  await until(() => load.answered > 6_000, 'two requests each', 60_000)
  await load.stop()
  assert.deepEqual(load.failures, [])
  assert.equal(await heddle.stop(), 0)
})

/** A lane exits in the midst of a load. */
async function losesNobody(t: TestContext, heddle: Heddle): Promise<void> {
  const load = startLoad({ port: heddle.port, path: '/thread', keepAlive: 200, everyMs: 5 })
  t.after(() => load.stop())
  await until(() => load.answered > 1000, 'a steady load', 30_000)
  const died = await until(async () => {
    const response = await ask(heddle.port, 'GET', '/die/exit')
    return response.status === 500 ? response : null
  }, 'a lane exits')
  assertFailure(died, 500, 'Internal server error')
  const answered = load.answered
  await until(() => load.answered > answered + 1000, 'the load goes on', 30_000)
  await load.stop()
  const unexpected = load.failures.filter((failure) => !/ HTTP\/1\.1 503 [\s\S]*\r\nretry-after: \d/i.test(failure))
  // What was begun is gone with its lane.
  assert.ok(unexpected.length < 4, unexpected.join('\n'))
  for (const failure of unexpected) assert.match(failure, / HTTP\/1\.1 500 /)
}

it('loses nobody who waits when one of 2 lanes exits', async (t) => {
  const heddle = await startSmall(t, { maxInFlight: 4, lanes: 2 })
  await losesNobody(t, heddle)
  assert.equal(await heddle.stop(), 0)
})

describe('a lane that holds four requests', () => {
  const heddleOf = shareService((owner) => startSmall(owner, { maxInFlight: 4 }))
  const quick = async (): Promise<Heddle> => {
    // The one that asks is in flight itself.
    const isAlone = async () => (await heddleOf().json('/lanes')).body.lanes?.[0].requests_in_flight === 1
    await until(isAlone, 'nothing is left of the test before')
    await becomeKnown(heddleOf(), 4)
    return heddleOf()
  }

  it('refuses those who wait for a lane that turns out to be slow', async (t) => {
    const heddle = await quick()
    const connections = await openMany(t, heddle.port, 4)
    for (const connection of connections) await connection.send(requestText('GET', '/w/hang/slow'))
    await until(
      async () => jsonOf(await ask(heddle.port, 'GET', '/p/state/slow:started')).data === 4,
      'the lane is full',
    )
    const waiting = await Promise.all(Array.from({ length: 20 }, () => ask(heddle.port, 'GET', '/thread')))
    for (const response of waiting) assertFailure(response, 503, 'The service is overloaded')
    for (const connection of connections) connection.drop()
    await until(async () => (await ask(heddle.port, 'GET', '/thread')).status === 200, 'the lane has room again')
  })

  it('never runs the requests of clients that leave while they wait', async (t) => {
    const heddle = await quick()
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
  })

  it('loses nobody who waits when one of 1 lanes exits', async (t) => {
    await losesNobody(t, await quick())
  })

  it('serves those who wait when SIGTERM arrives', async (t) => {
    const heddle = await quick()
    const load = startLoad({ port: heddle.port, path: '/thread', keepAlive: 300, everyMs: 5, stopsAtClose: true })
    t.after(() => load.stop())
    await until(() => load.answered > 1000, 'a steady load', 30_000)
    const stopped = heddle.stop()
    await until(() => load.closedByAnswer + load.failures.length === 300, 'the last answers', 30_000)
    assert.equal(await stopped, 0)
    assert.deepEqual(load.failures, [])
  })
})
