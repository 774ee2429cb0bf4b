import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlakyMode } from '../../fixtures/system/tools/flaky/index.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { SseClient } from '../../support/sse-client.ts'
import { startSystem } from '../../support/system-domain.ts'
import { until } from '../../support/until.ts'

const INTERVAL_SEC = 0.1

test('the periodic health check', async (t) => {
  const heddle = await startSystem(t, {
    flaky: true, // The check of `db` writes, and the time that it has here is short for a disk.
    env: { HEALTH_CHECK_INTERVAL: String(INTERVAL_SEC), SQLITE_SYNCHRONOUS: 'normal' },
  })
  const logs = await SseClient.open(t, heddle, '/system/logs/stream')
  const toolsNow = async () => (await heddle.json('/system/status')).body.tools
  const turn = (mode: FlakyMode) => heddle.post('/ailing/mode', { mode })
  const becomes = (status: string, message: string) =>
    until(async () => {
      const { flaky } = await toolsNow()
      return flaky.status === status && flaky.message === message
    }, `${status}: ${message}`)
  const entries = () =>
    logs.frames.filter(({ identity }) => identity === 'system.CheckTools').map(({ level, message }) => [level, message])

  await t.test('says OK of db and of every other tool that has one', async () => {
    await until(async () => (await toolsNow()).db.message === 'periodic check', 'db is checked')
    const tools = await toolsNow()
    assert.deepEqual(tools.db, { status: 'OK', message: 'periodic check', fault: null })
    assert.deepEqual(tools.flaky, { status: 'OK', message: 'periodic check', fault: null })
    assert.deepEqual(tools.auth, { status: 'OK', message: null, fault: null })
  })

  await t.test('makes a tool FAIL when it returns false, with one warning, and OK again by itself', async () => {
    await turn('ill')
    await becomes('FAIL', 'the health check returned false')
    await turn('well')
    await becomes('OK', 'periodic check')
    await logs.until(() => entries().length >= 2, 'both entries')
    assert.deepEqual(entries(), [
      ['WARNING', 'flaky is not healthy: the health check returned false'],
      ['INFO', 'flaky is healthy again'],
    ])
  })

  await t.test('makes a tool DEAD when it throws, with one error', async () => {
    logs.frames.length = 0
    await turn('broken')
    await becomes('DEAD', 'the cable is cut')
    await logs.until(() => entries().length >= 1, 'the entry')
    const checked = await checksOf(heddle)
    await until(async () => (await checksOf(heddle)) >= checked + 3, 'three further checks')
    assert.deepEqual(entries(), [['ERROR', 'The health check of flaky failed: the cable is cut']])
  })

  await t.test('makes a tool DEAD when it does not answer in time, and db is checked all the same', async () => {
    await turn('well')
    await becomes('OK', 'periodic check')
    logs.frames.length = 0
    await turn('hanging')
    await becomes('DEAD', `no answer within ${INTERVAL_SEC * 1000} ms`)
    assert.equal((await toolsNow()).db.status, 'OK')
    await turn('well')
    await becomes('OK', 'periodic check')
    await logs.until(() => entries().length >= 2, 'both entries')
    assert.deepEqual(
      entries().map(([level]) => level),
      ['ERROR', 'INFO'],
    )
  })

  await t.test('does not keep the process from ending in order while a check hangs', async () => {
    await turn('hanging')
    await becomes('DEAD', `no answer within ${INTERVAL_SEC * 1000} ms`)
    assert.equal(await heddle.stop(), 0)
  })
})

test('the status says what serves HTTP', async (t) => {
  const heddle = await startHeddle(t, { domains: [SHIPPED], lanes: 1, env: { HTTP_LISTENER: 'node' } })
  const { body } = await heddle.json('/system/status')
  const { listener } = (body as { data?: { listener: object } }).data ?? (body as { listener: object })
  assert.deepEqual(listener, { library: 'node:http', why: 'HTTP_LISTENER=node' })
})

test('readiness is 503 with reasons and Retry-After while no lane is up, and liveness stays 200', async (t) => {
  const heddle = await startSystem(t, { lanes: 1 })
  const { status, body } = await heddle.json('/system/health/ready')
  assert.equal(status, 200)
  assert.deepEqual(body, {
    success: true,
    data: {
      ready: true,
      reasons: [],
      lanes: { starting: 0, ready: 1, draining: 0, dead: 0 },
      starved: body.data.starved,
    },
  })

  await heddle.post('/probe/end-lane')
  const refusal = await until(async () => {
    const answer = await heddle.json('/system/health/ready')
    return answer.status === 503 ? answer : null
  }, 'it is not ready')
  assert.equal(refusal.headers.get('retry-after'), '1')
  assert.equal(refusal.body.success, false)
  assert.equal(refusal.body.error, 'Not ready: no lane is up')
  assert.deepEqual(refusal.body.reasons, ['no lane is up'])
  const refused = await heddle.json('/hello/world')
  // The new lane may be up by now.
  if (refused.status === 503) assert.match(refused.body.error, /^No lane is up/)
  assert.equal((await heddle.json('/system/health/live')).status, 200)
  await until(async () => (await heddle.json('/system/health/ready')).status === 200, 'it is ready again')
  const [lane] = (await heddle.json('/system/lanes')).body
  assert.equal(lane.restarts, 1)
  assert.equal(typeof lane.deaths[0].reason, 'string')
})

/** Health checks of the tool `flaky` so far. */
async function checksOf(heddle: Heddle): Promise<number> {
  const text = await (await heddle.fetch('/system/metrics/prometheus')).text()
  return Number(/^heddle_tool_calls_total\{tool="flaky",method="healthCheck"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}
