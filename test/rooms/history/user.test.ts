import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { RequestSummary } from '#heddle'
import { userOf } from '../../../src/history/open-work.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [SHIPPED, fileURLToPath(new URL('./payload-fixtures', import.meta.url))]

test('requests are found by their user: the subject of the token, or the user of its session', async (t) => {
  const service = await startHeddle(t, { domains: DOMAINS, lanes: 1, env: { HISTORY_ENABLED: 'true' } })
  await service.fetch('/accounts/me', { headers: { authorization: 'Bearer ada' } })
  assert.equal((await service.fetch('/accounts/me', { headers: { authorization: 'Bearer nobody' } })).status, 401)
  const started = await service.fetch('/accounts/sessions', { method: 'POST' })
  const cookie = started.headers.getSetCookie()[0]!.split(';')[0]!
  await service.fetch('/accounts/mine', { headers: { cookie } })
  const of = async (user: string, count: number): Promise<string[]> =>
    until(async () => {
      const { body } = await service.json(`/system/requests?user=${user}`)
      const rows = body as RequestSummary[]
      return rows.length === count ? rows.map(({ path, user: whose }) => `${path} ${whose}`) : undefined
    }, `the requests of ${user}`)
  assert.deepEqual(await of('ada', 1), ['/accounts/me ada'])
  assert.deepEqual(await of('7', 2), ['/accounts/mine 7', '/accounts/sessions 7'])
  assert.deepEqual(await of('nobody', 0), [])
})

test('a user is whoever claims or a session name', () => {
  assert.equal(userOf({ sub: 'ada', id: 1 }), 'ada')
  assert.equal(userOf({ user: { id: 7 } }), '7')
  assert.equal(userOf({ scope: 'all' }), undefined)
  const broken = new Proxy({}, { get: () => assert.fail('not to be read') })
  assert.equal(userOf(broken), undefined)
})
