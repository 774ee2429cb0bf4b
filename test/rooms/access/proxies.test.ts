// Handlers see the address that `TrustedProxies` finds. What it finds: test/unit/http/access.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { ask, headerOf, jsonOf } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const DOOR = fileURLToPath(new URL('../../fixtures/mounted', import.meta.url))
const CLIENT = '203.0.113.5'
const KEY = 'k'.repeat(32)

for (const [proxies, isTrusted] of [
  ['127.0.0.1, 10.0.0.0/8', true],
  ['10.0.0.0/8', false],
] as const) {
  test(`behind ${proxies} a client of 127.0.0.1 is ${isTrusted ? 'whom it names' : 'itself, which the log says once'}`, async (t) => {
    // On a socket of IPv6, where IPv4 addresses are mapped.
    const env = { HTTP_HOST: '::', AUTH_SECRET_KEY: KEY, HTTP_TRUSTED_PROXIES: proxies }
    const { port, logs } = await startHeddle(t, { domains: [SERVING], lanes: 1, env })
    for (const path of ['/w/echo', '/p/echo', '/w/echo']) {
      const { ip } = jsonOf(await ask(port, 'GET', path, { 'x-forwarded-for': `${CLIENT}, 10.1.2.3` })).data
      assert.equal(ip, isTrusted ? CLIENT : '127.0.0.1', path)
    }
    const told = logs.filter(({ msg }) => msg.includes('X-Forwarded-For that is not believed'))
    assert.deepEqual(
      told.map(({ ip }) => ip),
      isTrusted ? [] : ['127.0.0.1'],
    )
  })
}

for (const [proxies, isTrusted] of [
  ['127.0.0.1', true],
  ['10.0.0.0/8', false],
  ['', false],
] as const) {
  test(`x-forwarded-proto: ${isTrusted ? 'decides' : 'does not decide'} the scheme behind the proxies "${proxies}"`, async (t) => {
    const env = { SYSTEM_TOKEN: KEY, HTTP_TRUSTED_PROXIES: proxies, AUTH_SECRET_KEY: KEY }
    const { port } = await startHeddle(t, { domains: [SERVING, DOOR, SHIPPED], lanes: 1, env })
    for (const proto of ['https', 'HTTPS', 'https, http', 'http', 'httpsx', 'http, https', '']) {
      const isHttps = isTrusted && /^https(,|$)/i.test(proto)
      // What else a client can write about the way that its request has taken decides nothing.
      const headers = {
        'x-forwarded-proto': proto,
        forwarded: 'for=192.0.2.1;proto=https;host=evil.example',
        'x-forwarded-host': 'evil.example',
        'x-forwarded-ssl': 'on',
        'x-real-ip': '192.0.2.1',
      }
      const login = await ask(port, 'POST', '/system/login', { ...headers, authorization: `Bearer ${KEY}` })
      assert.equal(login.status, 200)
      assert.equal(headerOf(login, 'set-cookie')!.endsWith('; Secure'), isHttps, `the cookie of the login: ${proto}`)
      const { url } = JSON.parse((await ask(port, 'GET', '/door/x', headers)).body.toString())
      assert.match(url, isHttps ? /^https:\/\/(?!evil)/ : /^http:\/\/(?!evil)/, `the address of a mount: ${proto}`)
      for (const path of ['/w/echo', '/p/echo']) {
        const { ip, scheme } = jsonOf(await ask(port, 'GET', path, headers)).data
        assert.deepEqual([ip, scheme], ['127.0.0.1', isHttps ? 'https' : 'http'], `${path}: ${proto}`)
      }
    }
  })
}
