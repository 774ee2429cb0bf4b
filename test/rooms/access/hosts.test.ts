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
      const response = await ask(port, method, '/nowhere', {
        host: 'rebound.example',
        'access-control-request-method': 'GET',
      })
      assertFailure(response, REFUSED, 'This service has another host name')
    }
    const told = () => logs.filter(({ msg }) => msg.includes('HTTP_ALLOWED_HOSTS'))
    await until(() => told().length > 0, 'a line in the log')
    assert.equal(told().length, 1)
  })

  it('answers to the loopback names and its own address, with any port, and to no other spelling', async () => {
    const { port } = service()
    const names = ['localhost', 'LOCALHOST', 'localhost.', '127.0.0.1', '[::1]']
    for (const host of names.flatMap((name) => [name, `${name}:${port}`, `${name}:1`])) {
      assert.equal(await statusOf(port, 'GET', '/w/echo', { host }), 200, host)
    }
    const strange = ['', 'evil', 'localhost.evil', 'evil.localhost', '127.0.0.1.evil', '127.0.0.2', '127.1', '0.0.0.0']
    for (const host of [...strange, 'localhost@evil', 'localhost:80:80', 'localhost:x', '[::1', '[::2]', '*']) {
      const status = await statusOf(port, 'GET', '/w/echo', { host })
      assert.ok(status === REFUSED || (host === '' && status === 400), `${JSON.stringify(host)}: ${status}`)
    }
    // A name that was allowed before lets no other in.
    assert.equal(await statusOf(port, 'GET', '/w/echo', { host: 'localhost' }), 200)
    assert.equal(await statusOf(port, 'GET', '/w/echo', { host: 'evil' }), REFUSED)
  })
})

describe('HTTP_ALLOWED_HOSTS', { concurrency: true }, () => {
  const answers = async (port: number, host: string): Promise<boolean> =>
    (await statusOf(port, 'GET', '/w/echo', { host })) === 200

  it('lists names, names below a name, and addresses; nothing else is allowed then', async (t) => {
    const list = 'shop.example, *.shop.example, 127.0.0.9, ::1'
    const { port } = await startKinds(t, { env: { HTTP_ALLOWED_HOSTS: list } })
    for (const host of [
      'shop.example',
      'Shop.Example:443',
      'eu.shop.example',
      'a.b.shop.example',
      '127.0.0.9',
      '[::1]',
    ])
      assert.equal(await answers(port, host), true, host)
    for (const host of ['localhost', '127.0.0.1', '.shop.example', 'myshop.example', 'shop.example.evil'])
      assert.equal(await answers(port, host), false, host)
  })

  it('unset beyond loopback allows any name, with a warning', async (t) => {
    const env = { HTTP_ALLOWED_HOSTS: '', HTTP_HOST: '0.0.0.0', AUTH_SECRET_KEY: 'k'.repeat(32) }
    const { port, logs } = await startKinds(t, { env })
    assert.equal(await answers(port, 'anything.example'), true)
    assert.ok(logs.some(({ level, msg }) => level === 40 && msg.includes('HTTP_ALLOWED_HOSTS is not set')))
  })
})
