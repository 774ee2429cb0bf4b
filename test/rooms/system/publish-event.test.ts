import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventRecord } from '#heddle'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const PATH = '/system/events/publish'

test('an event is published by hand, with its contract, and with what it causes kept as of the request', async (t) => {
  const heddle = await startHeddle(t, { domains: [SHIPPED], lanes: 1, env: { HISTORY_ENABLED: 'true' } })
  const payload = { id: '3f0c1d1e-5b7a-4c2d-9e8f-0a1b2c3d4e5f', name: 'Ada', email: 'ada@example.com' }
  const { status, body, headers } = await heddle.post(PATH, { event: 'user.created', payload })
  assert.equal(status, 200, JSON.stringify(body))
  const requestId = headers.get('x-request-id')
  const records = await until(async () => {
    const all: EventRecord[] = (await heddle.json('/system/traces/flat')).body
    return all.some(({ event }) => event === 'runtime.operator.acted') ? all : undefined
  }, 'the event is published')
  const own = records.filter(({ request_id }) => request_id === requestId).map(({ event }) => event)
  assert.deepEqual(own.toSorted(), ['runtime.operator.acted', 'user.created'])
  assert.equal(records.find(({ event }) => event === 'user.created')?.id, body.data.id)
  const kept = await until(async () => {
    const detail = (await heddle.json(`/system/requests/${requestId}`)).body
    return JSON.stringify(detail.parts ?? '').includes('users.SendWelcome') ? detail : undefined
  }, 'the history has the request, and who got the event')
  assert.equal(kept.route, PATH)
  assert.ok(
    heddle.logs.some(({ msg, target }) => msg === 'An operator acted: event.publish' && target === 'user.created'),
  )

  await t.test('what does not fit its contract, or is internal, is refused', async () => {
    const misfit = await heddle.post(PATH, { event: 'user.created', payload: { id: 7 } })
    assert.equal(misfit.status, 422)
    assert.match(misfit.body.error, /user\.created/)
    assert.ok(misfit.body.details.some(({ path }: { path: string }) => path.includes('email')))
    assert.equal((await heddle.post(PATH, { event: '_own', payload: {} })).status, 422)
    assert.equal((await heddle.post(PATH, { payload: {} })).status, 422)
  })
})

test('in production nothing can be published by hand, and the answer says where it can', async (t) => {
  const env = { NODE_ENV: 'production', AUTH_SECRET_KEY: 'a secret that is long enough for it' }
  const heddle = await startHeddle(t, { domains: [SHIPPED], lanes: 1, env })
  const { status, body } = await heddle.post(PATH, { event: 'user.created', payload: {} })
  assert.equal(status, 404)
  assert.equal((await heddle.post(PATH)).status, 404, 'whatever comes')
  assert.match(body.error, /^Closed in production: .*npm run dev or NODE_ENV=development$/)
  const { responses } = (await heddle.json('/system/openapi.json')).body.paths[PATH].post
  assert.equal(responses['404'].description, body.error, 'by which the page of the API shows no form')
})
