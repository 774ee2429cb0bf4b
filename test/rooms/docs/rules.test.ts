import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { ROOT } from './sources.ts'

const DOMAINS = [join(ROOT, 'test/rooms/docs/fixtures/domains'), SHIPPED]
const JSON_BODY = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name":"Ada","more":1}' }

describe('rules of the guide', () => {
  const service = shareService({ domains: DOMAINS, lanes: 1 })

  test('data: validated fields alone with a schema, anything that a client sends without one', async () => {
    const data = async (path: string) => (await service().json(path, JSON_BODY)).body.data
    assert.deepEqual(await data('/body-only?isAdmin=yes&name=x'), { name: 'Ada' })
    assert.deepEqual(await data('/no-schema?isAdmin=yes&name=x'), { isAdmin: 'yes', name: 'Ada', more: 1 })
  })

  test('a tool call that fails without being awaited shows as the status of its tool', async () => {
    assert.equal((await service().json('/not-awaited', { method: 'POST' })).status, 200)
    const status = async () => (await service().json('/system/status')).body.tools.db
    // The next check finds the database well.
    const dead = async () => {
      const now = await status()
      return now.status === 'DEAD' && now
    }
    assert.match((await until(dead, 'db is DEAD')).message, /nowhere/)
  })

  test('a route that is registered after onBoot is refused, and so is a job of a lane', async () => {
    for (const path of ['/late/route', '/late/job', '/primary/late/route', '/primary/late/job']) {
      assert.equal((await service().json(path, { method: 'POST' })).status, 500, path)
      await until(
        () =>
          service().logs.find(
            ({ msg }) => msg.startsWith(`${path} failed`) && msg.includes('while the plugin boots, not later'),
          ),
        path,
      )
    }
  })
})
