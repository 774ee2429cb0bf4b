import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { fixture } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

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
