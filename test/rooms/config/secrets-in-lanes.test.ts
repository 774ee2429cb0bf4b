import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { describeOnPostgresAndRedis } from '../../support/servers/both-of-suite.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { startWith } from '../../support/started-service.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'

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
      const headers = { 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify({ texts }) }
      const { status, body } = await heddle.json('/look-for', init)
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
