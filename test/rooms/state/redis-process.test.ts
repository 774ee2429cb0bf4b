import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHeddle } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'
import { CHEAP_AUTH, SECRET, UsersService } from '../../support/users-service.ts'

/** The users themselves lie in each process: what is shared here is state alone. */
const SQLITE = { name: 'SQLite', env: async () => ({}) } as const
const DOMAINS = [SHIPPED]

test('a process starts without its store, serves what needs none, and heals when the store comes', async (t) => {
  const server = await redisServer(t, { own: true })
  if (server === null) return
  await server.stop()
  const env = { ...server.env, TOOLS_DIR: await toolsDirWith(t, 'redis-state', CHEAP_AUTH), AUTH_SECRET_KEY: SECRET }
  const { json, post, logs } = await startHeddle(t, {
    domains: DOMAINS,
    lanes: 1,
    env: { ...env, HEALTH_CHECK_INTERVAL: '0.5' },
  })
  const logIn = () => post('/login', { email: 'nobody@example.com', password: 'wrong' })
  const statusOfState = async () => (await json('/system/status')).body.tools.state

  assert.equal((await json('/hello/ada')).status, 200)
  const dead = await statusOfState()
  assert.deepEqual(
    [dead.status, /nothing listens there; start it, or correct KV_HOST/.test(dead.message)],
    ['DEAD', true],
  )
  const startedMs = performance.now()
  const refused = await logIn()
  assert.deepEqual([refused.status, refused.body.error], [503, 'The key-value store does not take this at the moment'])
  assert.ok(performance.now() - startedMs < 2000)
  assert.ok(logs.some(({ msg }) => msg.includes('KV_HOST')))

  await server.start()
  await until(async () => (await statusOfState()).status === 'OK', 'healed')
  await until(async () => (await logIn()).status === 401, 'used by a lane')
  const plugins = (await json('/system/status')).body.plugins as Record<string, { status: string }>
  assert.deepEqual(
    Object.entries(plugins).filter(([, { status }]) => status !== 'OK'),
    [],
  )
  // One line for each connection, in the primary and in the lane.
  const losses = logs.filter(({ msg }) => msg.includes('Trying again until it works'))
  assert.ok(losses.length <= 2, `${losses.length} lines: ${losses.map(({ msg }) => msg).join('\n')}`)
  assert.equal(JSON.stringify(logs).includes(server.password), false)
})

test('a store that is told wrongly does not keep a process from starting, nor from stopping', async (t) => {
  const env = {
    KV_HOST: '127.0.0.1',
    KV_PORT: String(await freePort()),
    TOOLS_DIR: await toolsDirWith(t, 'redis-state', CHEAP_AUTH),
  }
  const { stop } = await startHeddle(t, { domains: DOMAINS, lanes: 1, env: { ...env, AUTH_SECRET_KEY: SECRET } })
  assert.equal(await stop(), 0)
})

test('counters and windows outlive the process that made them', async (t) => {
  const server = await redisServer(t)
  if (server === null) return
  const env = { ...server.env, TOOLS_DIR: await toolsDirWith(t, 'redis-state', CHEAP_AUTH), LOGIN_MAX_ATTEMPTS: '3' }
  const start = () => UsersService.start(t, SQLITE, env, { lanes: 1 })
  const attempt = async (service: UsersService) =>
    (await service.post('/login', { email: 'grace@example.com', password: 'wrong' })).status
  const first = await start()
  for (let n = 0; n < 3; n++) assert.equal(await attempt(first), 401)
  await first.heddle.stop('SIGKILL')
  assert.equal(await attempt(await start()), 429)
})
