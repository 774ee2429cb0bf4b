import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { jwtVerify } from 'jose'
import { temporaryFolder } from '../../support/folder.ts'
import { describeOnPostgresAndRedis } from '../../support/servers/both-of-suite.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { startWith } from '../../support/started-service.ts'

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

describeOnPostgresAndRedis('what a plugin in a lane can look at', ({ postgres, redis }) => {
  /** A service that has two URLs. @returns it, and how it looks for texts */
  async function started(t: TestContext, env: Record<string, string> = {}) {
    const login = `${postgres.user}:${encodeURIComponent(postgres.password)}`
    const { KV_HOST, KV_PORT } = redis.env
    const heddle = await startWith(t, 'curious', {
      beside: SYSTEM_ROUTES,
      env: {
        AUTH_SECRET_KEY: SECRET,
        TOOLS: 'postgres,redis-state',
        DATABASE_URL: `postgres://${login}@${postgres.host}:${postgres.port}/${postgres.database}`,
        REDIS_URL: `redis://:${encodeURIComponent(redis.password)}@${KV_HOST}:${KV_PORT}/0`,
        ...env,
      },
    })
    const lookFor = async (...texts: string[]): Promise<{ things: number; found: string[] }> => {
      const { status, body } = await heddle.post('/look-for', { texts })
      assert.equal(status, 200, JSON.stringify(body))
      return body
    }
    return { heddle, lookFor }
  }

  test('has no secret of the runtime in it, though it uses the servers that two URLs name: tools, what they answer, what the thread was given', async (t) => {
    const { heddle, lookFor } = await started(t)
    const { things, found } = await lookFor(SECRET, postgres.password, redis.password, 'postgres://', 'redis://')
    assert.ok(things > 100, `${things} were looked at`)
    assert.deepEqual(found, [])
    const { db, state } = (await heddle.json('/system/status')).body.tools
    assert.deepEqual([db?.status, state?.status], ['OK', 'OK'])
  })

  test('has none in the errors of servers that refuse it', async (t) => {
    const wrong = { RDB_PASSWORD: 'a-wrong-database-password', KV_PASSWORD: 'a-wrong-store-password' }
    const { lookFor } = await started(t, wrong)
    assert.deepEqual((await lookFor(SECRET, ...Object.values(wrong))).found, [])
    for (const name of Object.keys(wrong))
      assert.notDeepEqual((await lookFor(name)).found, [], 'the errors are looked at')
  })
})
