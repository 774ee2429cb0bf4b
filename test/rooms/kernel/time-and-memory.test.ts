import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { fixture } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fixture('deployed')]

test('handlers and the shutdown have their time, and a lane its memory', async (t) => {
  const heddle = await startHeddle(t, {
    domains: [...DOMAINS, SYSTEM_ROUTES],
    lanes: 1,
    env: { HTTP_HANDLER_TIMEOUT_MS: '200', SHUTDOWN_TIMEOUT_MS: '500', LANE_MEMORY_MB: '64' },
  })
  const startedMs = Date.now()
  const { status, body } = await heddle.json('/never')
  assert.deepEqual([status, body], [504, { success: false, error: 'The handler did not answer in time' }])
  assert.ok(Date.now() - startedMs < 2000)

  await heddle.json('/take-memory')
  const death = await until(() => heddle.logs.find(({ msg }) => msg.startsWith('Lane 0 died')), 'the death')
  assert.match(death.msg, /memory/i)
  await until(async () => (await heddle.json('/dump')).status === 200, 'the next lane')
  const [lane] = (await heddle.json('/system/lanes')).body
  assert.equal(lane.deaths[0].reason, 'memory')

  const begun = heddle.logs.filter(({ msg }) => msg === 'begun').length
  const hanging = heddle.fetch('/never-long').catch(() => null)
  await until(() => heddle.logs.filter(({ msg }) => msg === 'begun').length > begun, 'the handler')
  const stoppedMs = Date.now()
  assert.equal(await heddle.stop(), 0)
  const tookMs = Date.now() - stoppedMs
  assert.ok(tookMs >= 250 && tookMs < 3000, `${tookMs} ms`)
  await hanging
})

test('a lane knows the health of the process from its first request on, also when it has replaced another', async (t) => {
  const heddle = await startHeddle(t, { domains: [fixture('deployed'), SHIPPED], lanes: 1 })
  const assertKnown = (body: { plugins: object; tools: object }): void => {
    assert.ok(Object.hasOwn(body.plugins, 'fleet.TakeTime') && Object.hasOwn(body.tools, 'db'), JSON.stringify(body))
  }
  assertKnown((await heddle.json('/dump')).body)
  assert.equal((await heddle.fetch('/exit')).status, 500)
  const { body } = await until(async () => {
    const answer = await heddle.json('/dump')
    return answer.status === 200 ? answer : null
  }, 'the next lane')
  assertKnown(body)
})
