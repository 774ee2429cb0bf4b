import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { jwtVerify } from 'jose'
import { temporaryFolder } from '../../support/folder.ts'
import { describeOnPostgresAndRedis } from '../../support/servers/both-of-suite.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { startWith } from '../../support/started-service.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'

const SECRET = 'a-secret-of-more-than-32-characters'

test('a lane has neither the secrets of the runtime nor the variables of other plugins in its environment', async (t) => {
  const folder = temporaryFolder(t)
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

const AUTH_SECRET_KEY = 'a-secret-of-more-than-32-characters'

describeOnPostgresAndRedis('what a plugin in a lane can look at', ({ postgres, redis }) => {
  /** @returns how it looks for texts */
  async function started(t: TestContext, env: Record<string, string> = {}) {
    const TOOLS_DIR = await toolsDirWith(t, 'postgres', 'redis-state')
    const heddle = await startWith(t, 'curious', {
      beside: SYSTEM_ROUTES,
      env: { ...postgres.env, ...redis.env, AUTH_SECRET_KEY, TOOLS_DIR, ...env },
    })
    return async (...texts: string[]): Promise<{ things: number; found: string[] }> => {
      const { status, body } = await heddle.post('/look-for', { texts })
      assert.equal(status, 200, JSON.stringify(body))
      return body
    }
  }

  test('has no secret of the runtime in it: tools, what they answer, what the thread was given', async (t) => {
    const lookFor = await started(t)
    const { things, found } = await lookFor(AUTH_SECRET_KEY, postgres.password, redis.password)
    assert.ok(things > 100, `${things} were looked at`)
    assert.deepEqual(found, [])
  })

  test('has none in the errors of servers that refuse it', async (t) => {
    const wrong = { RDB_PASSWORD: 'a-wrong-database-password', KV_PASSWORD: 'a-wrong-store-password' }
    const lookFor = await started(t, wrong)
    assert.deepEqual((await lookFor(AUTH_SECRET_KEY, ...Object.values(wrong))).found, [])
    for (const name of Object.keys(wrong))
      assert.notDeepEqual((await lookFor(name)).found, [], 'the errors are looked at')
  })
})
