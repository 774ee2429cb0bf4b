import assert from 'node:assert/strict'
import { test } from 'node:test'
import AuthTool from '../../../src/tools/auth/index.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { shareService } from '../../support/shared-service.ts'
import { fixture } from '../../support/started-service.ts'
import { buildTool, SECRET } from '../../support/tool-runtime.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [fixture('tokens')]

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const issue = async (heddle: Heddle): Promise<string> =>
  (await heddle.json('/issue/3600', { method: 'POST' })).body.token as string
const revoke = async (heddle: Heddle, token: string) =>
  (await heddle.json('/revoke', { method: 'POST', ...bearer(token) })).body
const statusOf = async (heddle: Heddle, token: string) => (await heddle.fetch('/thread', bearer(token))).status

const service = shareService({ lanes: 2, domains: DOMAINS })

test('a revoked token is refused by every thread from the moment when that was answered, and no other token is', async () => {
  const heddle = service()
  const [kept, lost] = [await issue(heddle), await issue(heddle)]
  const threads = new Set<number>()
  await until(async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => heddle.json('/thread', bearer(kept))))
    for (const { body } of answers) threads.add(body.thread)
    return threads.size === 2
  }, 'both lanes have answered')
  for (let round = 0; round < 5; round++) {
    const token = round === 0 ? lost : await issue(heddle)
    assert.equal(await statusOf(heddle, token), 200)
    assert.deepEqual(await revoke(heddle, token), { revoked: true })
    const answers = await Promise.all(Array.from({ length: 16 }, () => statusOf(heddle, token)))
    assert.deepEqual([...new Set(answers)], [401])
  }
  assert.equal(await statusOf(heddle, kept), 200)
})

test('a revoked token is refused by all replicas on one store, and by one that starts later', async (t) => {
  const redis = await redisServer(t)
  if (redis === null) return
  const env = { ...redis.env, AUTH_SECRET_KEY: SECRET, TOOLS_DIR: await toolsDirWith(t, 'redis-state') }
  const replica = (name: string) => startHeddle(t, { lanes: 1, domains: DOMAINS, env: { ...env, REPLICA_ID: name } })
  const [a, b] = await Promise.all([replica('a'), replica('b')])
  const tokens = await Promise.all(Array.from({ length: 4 }, () => issue(a)))
  for (const token of tokens) assert.equal(await statusOf(b, token), 200)
  const [first, second, third, kept] = tokens as [string, string, string, string]
  await Promise.all([revoke(a, first), revoke(b, second)])
  await until(async () => (await statusOf(b, first)) === 401 && (await statusOf(a, second)) === 401, 'both know both')
  await revoke(a, third)
  await until(async () => (await statusOf(b, third)) === 401, 'known there, too')
  const late = await replica('late')
  for (const token of [first, second, third]) assert.equal(await statusOf(late, token), 401)
  for (const each of [a, b, late]) assert.equal(await statusOf(each, kept), 200)
})

test('while a starting process cannot ask for the revoked tokens it answers 503, and heals', async (t) => {
  const redis = await redisServer(t, { own: true })
  if (redis === null) return
  const env = { ...redis.env, AUTH_SECRET_KEY: SECRET, TOOLS_DIR: await toolsDirWith(t, 'redis-state') }
  await redis.stop()
  const heddle = await startHeddle(t, { lanes: 1, domains: DOMAINS, env: { ...env, KV_CONNECT_TIMEOUT: '0.5' } })
  const token = await issue(heddle)
  assert.equal(await statusOf(heddle, token), 503)
  await redis.start()
  await until(async () => (await statusOf(heddle, token)) === 200, 'healed')
  // From here on it goes on with what it knows.
  await redis.stop()
  assert.equal(await statusOf(heddle, token), 200)
})

test('a token without an id, and one of which only the claims are left, can be revoked; one that is not valid is not', async () => {
  const auth = buildTool(AuthTool).tool.api()
  const [first, second] = [await auth.createToken({ sub: 'ada' }), await auth.createToken({ sub: 'ada' })]
  const { jti, exp } = (await auth.validateToken(second))!
  assert.equal(await auth.revokeToken(first), true)
  assert.equal(await auth.validateToken(first), null)
  assert.notEqual(await auth.validateToken(second), null)
  assert.equal(await auth.revokeToken({ jti: jti!, exp }), true)
  assert.equal(await auth.validateToken(second), null)
  assert.equal(await auth.revokeToken('no token'), false)
  await assert.rejects(auth.revokeToken({} as never), { code: 'AUTH_INVALID_INPUT' })
})
