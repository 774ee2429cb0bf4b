import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { post, startWith } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

/** Every call of every tool, as a plugin in a lane has just made it; three of `db` once more through `tx`. */
const ONE_CALL_EACH = [
  'auth.createSecret auth.createToken auth.hashPassword auth.validateToken auth.verifyPassword config.get',
  'db.execute db.healthCheck db.query db.queryOne db.transaction',
  'event_bus.addFailureListener event_bus.addListener event_bus.deleteDeadLetter event_bus.getDeadLetters',
  'event_bus.getSubscribers event_bus.getTopology event_bus.getTraceHistory event_bus.publish',
  'event_bus.replayDeadLetter event_bus.request event_bus.subscribe',
  'logger.addSink logger.debug logger.error logger.info logger.warn logger.warning',
  'registry.addMetricsSink registry.getLanes registry.getMetrics registry.getReadiness registry.getSystemDump',
  'registry.updateToolStatus scheduler.list',
  'state.clear state.compareAndSet state.delete state.get state.has state.increment state.keys state.set',
  'telemetry.getTracer',
].flatMap((line) => line.split(' '))

const SECRET = 'the secret of all replicas together'

test('the tools', async (t) => {
  const replica = (key: string, more: Record<string, string> = {}) =>
    startWith(t, 'observed', { beside: SYSTEM_ROUTES, env: { AUTH_SECRET_KEY: key, ...more } })
  const heddle = await replica(SECRET, { AUTH_TOKEN_TTL_SEC: '120' })
  const toolNow = async (name: string) => (await heddle.json('/system/status')).body.tools[name]

  await t.test('every call of every tool is one metric record', async () => {
    const { calls } = await post(heddle, '/call-all')
    const expected: Record<string, number> = Object.fromEntries(ONE_CALL_EACH.map((call) => [call, 1]))
    for (const call of ['db.query', 'db.queryOne', 'db.execute']) expected[call] = 2
    // The runtime asks for the health of the database, too, now and then.
    for (const call of ['db.healthCheck', 'registry.updateToolStatus']) if (calls[call] > 1) calls[call] = 1
    assert.deepEqual(calls, expected)
    const booted = (await heddle.json('/booted')).body.calls
    for (const call of ['http.addEndpoint', 'http.addStream', 'scheduler.cron', 'scheduler.every', 'scheduler.at']) {
      assert.ok(booted[call] >= 1, call)
    }
  })

  await t.test('span blocks run with no effect while tracing is off', async () => {
    const { result } = (await heddle.json('/trace')).body
    assert.deepEqual(result, { isRecording: false, traceId: '0'.repeat(32) })
  })

  await t.test('a plugin in a lane sets the status of a tool; a call mends DEAD, and does not mend FAIL', async () => {
    await post(heddle, '/status', { tool: 'auth', status: 'FAIL', message: 'running low' })
    await until(async () => (await toolNow('auth')).status === 'FAIL', 'FAIL')
    assert.deepEqual(await toolNow('auth'), { status: 'FAIL', message: 'running low', fault: 'tool' })
    await post(heddle, '/validate', { token: 'none' })
    assert.deepEqual(await toolNow('auth'), { status: 'FAIL', message: 'running low', fault: 'tool' })

    await post(heddle, '/status', { tool: 'auth', status: 'DEAD', message: 'gone' })
    await until(async () => (await toolNow('auth')).status === 'DEAD', 'DEAD')
    assert.deepEqual(await toolNow('auth'), { status: 'DEAD', message: 'gone', fault: 'tool' })
    await post(heddle, '/validate', { token: 'none' })
    await until(async () => (await toolNow('auth')).status === 'OK', 'OK')
    assert.deepEqual(await toolNow('auth'), { status: 'OK', message: 'Recovered from transient failure', fault: null })
  })

  await t.test('a stream asks for the token that its validator wants', async () => {
    assert.equal((await heddle.fetch('/silence')).status, 401)
    const leave = new AbortController()
    const headers = { authorization: 'Bearer good' }
    const { status } = await heddle.fetch('/silence', { headers, signal: leave.signal })
    leave.abort()
    assert.equal(status, 200)
  })

  await t.test('a token lives as long as AUTH_TOKEN_TTL_SEC says', async () => {
    const { token } = await post(heddle, '/token', { sub: 'me' })
    const { claims } = await post(heddle, '/validate', { token })
    assert.equal(claims.exp - claims.iat, 120)
  })

  await t.test(
    'a token of one replica is valid on every other with the same secret, and on none with another',
    async () => {
      const [other, stranger] = await Promise.all([replica(SECRET), replica(`${SECRET}, or not`)])
      const { token } = await post(heddle, '/token', { sub: 'user-1' })
      assert.equal((await post(other!, '/validate', { token })).claims.sub, 'user-1')
      assert.equal((await post(stranger!, '/validate', { token })).claims, null)
    },
  )
})
