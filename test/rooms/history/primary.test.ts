import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { RequestDetail, RequestPart, RequestSummary, WorkPart } from '#heddle'
import { userOf } from '../../../src/history/open-work.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const fixtures = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** The parts of the request with this answer, once they are as wanted. */
async function partsOf(
  service: Heddle,
  id: string,
  isThere: (parts: RequestPart[]) => boolean,
): Promise<RequestPart[]> {
  return until(async () => {
    const { status, body } = await service.json(`/system/requests/${id}`)
    const parts = status === 200 ? (body as RequestDetail).parts : []
    return isThere(parts) ? parts : undefined
  }, 'its parts are kept')
}

const worksIn = (parts: RequestPart[]): WorkPart[] => parts.filter((part) => part.type === 'work')

test('work of the primary’s own plugins is kept: requests, subscribers, jobs and their calls', async (t) => {
  const domains = [SHIPPED, fixtures('./primary-fixtures')]
  const service = await startHeddle(t, { domains, lanes: 1, env: { HISTORY_ENABLED: 'true' } })
  const ask = async (path: string): Promise<string> => (await service.fetch(path)).headers.get('x-request-id')!

  const works = worksIn(await partsOf(service, await ask('/desk'), (parts) => worksIn(parts).length === 2))
  assert.deepEqual(
    works.map(({ name, thread, calls }) => [name, thread, calls.map(({ tool, method }) => `${tool}.${method}`)]),
    [
      ['desk.WatchDesk.look', 'primary', ['state.get', 'event_bus.publish']],
      ['desk.WatchDesk.note', 'primary', ['state.set']],
    ],
  )
  const jobs = await until(async () => {
    const { body } = await service.json('/system/requests?plugin=WatchDesk&kind=job')
    return (body as RequestSummary[]).length > 0 ? (body as RequestSummary[]) : undefined
  }, 'the job is kept')
  assert.deepEqual([jobs[0]!.route, jobs[0]!.lane], ['dust', -1])

  const fine = await ask('/system/desk')
  const [broken] = worksIn(await partsOf(service, await ask('/system/desk/broken'), (parts) => parts.length > 0))
  assert.match(broken!.error!.stack, /The desk has fallen\n.*watch-desk\.ts:/)
  assert.equal((await service.fetch(`/system/requests/${fine}`)).status, 404)
})

test('deliveries of streams are kept, with their retries', async (t) => {
  const redis = await redisServer(t)
  if (redis === null) return
  const env = { ...redis.env, EVENT_BUS_DRIVER: 'keyvalue_streams', HISTORY_ENABLED: 'true' }
  const service = await startHeddle(t, { domains: [SHIPPED, fixtures('./fixtures')], lanes: 1, env })
  const deliveries = async (quantity: number, isThere: (parts: RequestPart[]) => boolean) => {
    const { headers } = await service.post('/orders', { item: 'loom', quantity })
    const parts = await partsOf(service, headers.get('x-request-id')!, isThere)
    return parts.filter((part) => part.type === 'delivery')
  }
  const [fine] = await deliveries(1, (parts) => parts.some(({ type }) => type === 'delivery'))
  assert.deepEqual([fine!.group, fine!.isGivenUp, fine!.steps], ['shop.ChargeCard.charge', false, []])
  const [failed] = await deliveries(13, (parts) => parts.some((part) => part.type === 'delivery' && part.isGivenUp))
  assert.deepEqual(
    failed!.steps.map(({ name }) => name),
    ['retry', 'retry', 'dead_letter'],
  )
})

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
