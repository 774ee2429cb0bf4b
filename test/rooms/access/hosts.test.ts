// Each kind of request is asked for its host. Which names are allowed: test/unit/http/access.test.ts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ask, assertFailure } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'
import { KINDS, startKinds, statusOf } from './kinds.ts'

const REFUSED = 421

describe('a service on a loopback address with HTTP_ALLOWED_HOSTS unset', { concurrency: true }, () => {
  const service = shareService((owner) => startKinds(owner, { env: { HTTP_ALLOWED_HOSTS: '' } }))

  for (const [kind, method, path] of KINDS) {
    it(`refuses ${kind} under the name of another host`, async () => {
      assert.equal(await statusOf(service().port, method, path, { host: 'rebound.example' }), REFUSED)
      assert.notEqual(await statusOf(service().port, method, path, { host: 'localhost' }), REFUSED)
    })
  }

  it('refuses an unknown path and a preflight too, in its own envelope, and says so once in the log', async () => {
    const { port, logs } = service()
    for (const method of ['GET', 'OPTIONS']) {
      const headers = { host: 'rebound.example', 'access-control-request-method': 'GET' }
      assertFailure(await ask(port, method, '/nowhere', headers), REFUSED, 'This service has another host name')
    }
    const told = () => logs.filter(({ msg }) => msg.includes('HTTP_ALLOWED_HOSTS'))
    await until(() => told().length > 0, 'a line in the log')
    assert.equal(told().length, 1)
  })
})

it('beyond loopback a service without HTTP_ALLOWED_HOSTS and SYSTEM_TOKEN answers to any name, and warns of both', async (t) => {
  const env = { HTTP_ALLOWED_HOSTS: '', HTTP_HOST: '0.0.0.0', AUTH_SECRET_KEY: 'k'.repeat(32) }
  const { port, logs } = await startKinds(t, { env })
  for (const path of ['/w/echo', '/system/status'])
    assert.equal(await statusOf(port, 'GET', path, { host: 'anything.example' }), 200)
  for (const warning of ['HTTP_ALLOWED_HOSTS is not set', 'SYSTEM_TOKEN and SYSTEM_PORT'])
    assert.equal(logs.filter(({ level, msg }) => level === 40 && msg.includes(warning)).length, 1, warning)
})
