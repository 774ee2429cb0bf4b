// Handlers see the address that `TrustedProxies` finds. What it finds: test/unit/http/access.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { ask, jsonOf } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'

const CLIENT = '203.0.113.5'

for (const [proxies, isTrusted] of [
  ['127.0.0.1, 10.0.0.0/8', true],
  ['10.0.0.0/8', false],
] as const) {
  test(`behind ${proxies} a client of 127.0.0.1 is ${isTrusted ? 'whom it names' : 'itself, which the log says once'}`, async (t) => {
    // On a socket of IPv6, where IPv4 addresses are mapped.
    const env = { HTTP_HOST: '::', AUTH_SECRET_KEY: 'k'.repeat(32), HTTP_TRUSTED_PROXIES: proxies }
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
