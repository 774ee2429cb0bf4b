import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { jwtVerify } from 'jose'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { startWith } from '../../support/started-service.ts'

const SECRET = 'a-secret-of-more-than-32-characters'

test('a lane has neither the secrets of the runtime nor the variables of other plugins in its environment', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-secrets-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'auth-key')
  writeFileSync(file, `${SECRET}\n`)
  const heddle = await startWith(t, 'environment', {
    beside: SYSTEM_ROUTES,
    env: {
      AUTH_SECRET_KEY_FILE: file,
      RDB_PASSWORD: 'database-password',
      KV_PASSWORD: 'store-password',
      PAYMENTS_KEY: 'payments-key',
      MAIL_REGION: 'north',
      LANE_ENV: 'MAIL_*',
    },
  })
  const { body: environment } = await heddle.json('/environment')
  assert.deepEqual(
    ['AUTH_SECRET_KEY', 'RDB_PASSWORD', 'KV_PASSWORD', 'PAYMENTS_KEY', 'MAIL_REGION', 'PATH'].filter(
      (name) => name in (environment as object),
    ),
    ['MAIL_REGION', 'PATH'],
  )
  const secrets = /database-password|store-password|payments-key|a-secret-of/
  assert.doesNotMatch(JSON.stringify(environment), secrets)

  const variable = async (name: string) => (await heddle.json(`/variable/${name}`)).body.value
  assert.equal(await variable('PAYMENTS_KEY'), 'payments-key', 'a plugin that asks for its own variable gets it')
  for (const name of ['AUTH_SECRET_KEY', 'RDB_PASSWORD', 'KV_PASSWORD']) assert.equal(await variable(name), '(unset)')

  const { body } = await heddle.json('/token')
  const { payload } = await jwtVerify(body.token, Buffer.from(SECRET))
  assert.equal(payload.sub, 'ada', 'tokens are signed with the secret of the file')
})
