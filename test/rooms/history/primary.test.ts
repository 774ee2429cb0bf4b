import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { RequestDetail, RequestPart, RequestSummary, WorkPart } from '#heddle'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { post } from '../../support/system-domain.ts'
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
    const { headers } = await post(service, '/orders', { item: 'loom', quantity })
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
