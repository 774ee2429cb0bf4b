import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { suiteOwner } from '../../support/replicas.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { ROOT } from './sources.ts'

const DOMAINS = [join(ROOT, 'test/rooms/docs/fixtures/domains'), SHIPPED]
const JSON_BODY = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name":"Ada","more":1}' }

describe('rules of the guide', () => {
  const owner = suiteOwner()
  let heddle: Heddle

  before(async () => {
    heddle = await startHeddle(owner, { domains: DOMAINS, lanes: 1 })
  })

  test('the query is merged into data beside a body schema, and a query schema keeps it out', async () => {
    assert.deepEqual((await heddle.json('/body-only?isAdmin=yes&name=x', JSON_BODY)).body.data, {
      isAdmin: 'yes',
      name: 'Ada',
    })
    assert.deepEqual((await heddle.json('/body-and-query?isAdmin=yes', JSON_BODY)).body.data, { name: 'Ada' })
  })

  test('an answer is held against its response schema, but not in production', async (t) => {
    const answerOf = async ({ json }: Heddle) => {
      const { status, body } = await json('/response')
      return [status, body]
    }
    assert.deepEqual(await answerOf(heddle), [500, { success: false, error: 'Internal server error' }])
    const production = await startHeddle(t, { domains: DOMAINS, lanes: 1, env: { NODE_ENV: 'production' } })
    assert.deepEqual(await answerOf(production), [200, { name: 1 }])
  })

  test('a tool call that fails without being awaited shows as the status of its tool', async () => {
    assert.equal((await heddle.json('/not-awaited', { method: 'POST' })).status, 200)
    const status = async () => (await heddle.json('/system/status')).body.tools.db
    await until(async () => (await status()).status === 'DEAD', 'db is DEAD')
    assert.match((await status()).message, /nowhere/)
  })

  test('a route that is registered after onBoot is refused, and so is a job of a lane', async () => {
    for (const path of ['/late/route', '/late/job', '/primary/late/route', '/primary/late/job']) {
      assert.equal((await heddle.json(path, { method: 'POST' })).status, 500, path)
      await until(
        () =>
          heddle.logs.find(
            ({ msg }) => msg.startsWith(`${path} failed`) && msg.includes('while the plugin boots, not later'),
          ),
        path,
      )
    }
  })

  test('a write through db inside of a transaction waits for itself and fails after 5 s', async () => {
    assert.equal((await heddle.json('/write-in-transaction', { method: 'POST' })).status, 503)
    assert.ok(heddle.logs.some(({ msg }) => msg.startsWith('/write-in-transaction failed: Waited 5000 ms')))
  })
})
