import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type BootedApp, boot, type PluginApp, plugin } from '#heddle/testing'
import keepTime from '../../fixtures/testing/timed/plugins/keep-time.ts'
import { describeOnPostgres } from '../../support/servers/postgres-of-file.ts'

const TIMED = new URL('../../fixtures/testing/timed', import.meta.url)
const HOUR_MS = 3_600_000
/** Half an hour before the clocks of Berlin go forward. */
const START = '2026-03-29T00:30:00Z'
/** What goes by between two lines of a test, on a busy machine. */
const SLACK_MS = 60_000

type App = BootedApp | PluginApp

interface Ran {
  what: string
  at_ms: number
}

async function ranOf(app: App, name = ''): Promise<Ran[]> {
  const { ran } = (await app.get('/ran')).body as { ran: Ran[] }
  return ran.map(({ what, at_ms }) => ({ what, at_ms: Number(at_ms) })).filter(({ what }) => what.startsWith(name))
}

const namesOf = async (app: App, name: string): Promise<string[]> => (await ranOf(app, name)).map(({ what }) => what)

async function publish(app: App, event: string, name: string, options: object = {}, at?: Date): Promise<string> {
  const { status, body } = await app.post('/publish', { event, name, options, at })
  assert.equal(status, 200, JSON.stringify(body))
  return body.id
}

const isAbout = (ms: number, wantedMs: number): void =>
  assert.ok(
    ms >= wantedMs - 1 && ms < wantedMs + SLACK_MS,
    `${new Date(ms).toISOString()} is not ${new Date(wantedMs).toISOString()}`,
  )

const startMs = Date.parse(START)
const at = (time: string): number => Date.parse(`2026-03-${time}Z`)

async function keepsTime(t: TestContext, app: App): Promise<void> {
  const { clock } = app

  await t.test('now(): begins at `start`', () => isAbout(clock.now().getTime(), startMs))

  await t.test(
    'advance(): delayed events, retries and jobs of 30 hours run in their order, each at its time',
    async () => {
      const realMs = performance.now()
      const nowMs = clock.now().getTime()
      await publish(app, 'timed.reminder', 'second', { delayMs: 20 * HOUR_MS })
      await publish(app, 'timed.reminder', 'first', {}, new Date(nowMs + HOUR_MS))
      await publish(app, 'timed.flaky', 'flaky', { delayMs: 10 * HOUR_MS })
      await clock.advance('20 min')
      assert.deepEqual(await ranOf(app), [])
      await clock.advance('29 h 40 min')
      isAbout(clock.now().getTime(), nowMs + 30 * HOUR_MS)
      const ran = await ranOf(app)
      const wanted: [string, number | null][] = [
        // 2:30 is not there that night: it is due when the clocks show 3:00.
        ['nightly 2026-03-29T01:00:00.000Z', at('29T01:00')],
        ['first', nowMs + HOUR_MS],
        ['often', at('29T08:30')],
        ['flaky 1', nowMs + 10 * HOUR_MS],
        ['flaky 2', null],
        ['flaky 3', null],
        ['often', at('29T16:30')],
        ['second', nowMs + 20 * HOUR_MS],
        ['nightly 2026-03-30T00:30:00.000Z', at('30T00:30')],
        ['often', at('30T00:30')],
      ]
      assert.deepEqual(
        ran.map(({ what }) => what),
        wanted.map(([what]) => what),
      )
      for (const [n, [, atMs]] of wanted.entries()) if (atMs !== null) isAbout(ran[n]!.at_ms, atMs)
      assert.ok(performance.now() - realMs < HOUR_MS)
    },
  )

  await t.test('advance(): goes to a date, when a job of that date has run', async () => {
    await clock.advance(new Date('2026-03-30T12:00:00Z'))
    assert.deepEqual(await namesOf(app, 'once'), ['once'])
    await assert.rejects(clock.advance(new Date('2026-03-30T11:59:00Z')), /only goes forward, not to 2026-03-30T11:59/)
  })

  await t.test('a limit lets the next one begin when its time is over', async () => {
    for (const name of ['limited a', 'limited b', 'limited c']) await publish(app, 'timed.limited', name)
    await publish(app, 'timed.limited', 'limited, too late', { ttlMs: HOUR_MS })
    await clock.advance(0)
    assert.deepEqual(await namesOf(app, 'limited'), ['limited a'])
    await clock.advance('50 min')
    assert.deepEqual(await namesOf(app, 'limited'), ['limited a'])
    await clock.advance('15 min')
    assert.deepEqual(await namesOf(app, 'limited'), ['limited a', 'limited b'])
    // The last one has expired meanwhile (ttlMs).
    await clock.advance('4 h')
    assert.deepEqual(await namesOf(app, 'limited'), ['limited a', 'limited b', 'limited c'])
  })

  await t.test('a limit by share lets the next one of each begin', async () => {
    for (const name of ['fair a', 'fair a', 'fair b', 'fair b', 'fair a']) await publish(app, 'timed.fair', name)
    const counts: string[] = []
    for (const by of [0, '50 min', '15 min', '4 h']) {
      await clock.advance(by)
      counts.push(
        (await namesOf(app, 'fair'))
          .sort()
          .map((name) => name.at(-1))
          .join(''),
      )
    }
    assert.deepEqual(counts, ['ab', 'ab', 'aabb', 'aaabb'])
  })

  await t.test('RetryLater puts off an event, and holds up the others of its subscriber', async () => {
    await publish(app, 'timed.put-off', 'put off 1')
    await clock.advance(0)
    await publish(app, 'timed.put-off', 'put off 2')
    await clock.advance('59 min')
    assert.deepEqual(await namesOf(app, 'put off'), [])
    await clock.advance('1 min')
    assert.deepEqual((await namesOf(app, 'put off')).sort(), ['put off 1', 'put off 2'])
  })

  await t.test('`unique` with `replace` waits an hour after the last one', async () => {
    const unique = { unique: 'cart', replace: true, delayMs: HOUR_MS }
    const id = await publish(app, 'timed.reminder', 'cart 1', unique)
    await clock.advance('40 min')
    assert.equal(await publish(app, 'timed.reminder', 'cart 2', unique), id)
    await clock.advance('40 min')
    assert.deepEqual(await namesOf(app, 'cart'), [])
    await clock.advance('21 min')
    assert.deepEqual(await namesOf(app, 'cart'), ['cart 2'])
  })

  await t.test('a result is kept for `resultMs`', async () => {
    const id = await publish(app, 'timed.result', 'result')
    await clock.advance('50 s')
    const { body } = await app.get(`/followed/${id}`)
    assert.deepEqual([body.state, body.result], ['done', { answer: 42 }])
    await clock.advance('20 s')
    assert.equal((await app.get(`/followed/${id}`)).status, 500)
    assert.ok(app.logs.some(({ message }) => message.includes(`Nothing is known of the event ${id}`)))
  })

  await t.test('keys of `state`, tokens and answers of idempotency keys expire', async () => {
    await app.post('/state', { key: 'short', ttlMs: HOUR_MS })
    const { token } = (await app.post('/token')).body
    const pay = () => app.post('/paid', undefined, { headers: { 'idempotency-key': 'one' } })
    await pay()
    await clock.advance('10 min')
    assert.equal((await pay()).headers.get('idempotency-replayed'), 'true')
    assert.equal((await app.get('/state/short')).body.value, 'there')
    assert.equal((await app.get('/me', { token })).status, 200)
    await clock.advance('1 h')
    assert.equal((await pay()).headers.get('idempotency-replayed'), null)
    assert.equal((await namesOf(app, 'paid')).length, 2)
    assert.equal((await app.get('/state/short')).body.value, null)
    await clock.advance('7 d')
    assert.equal((await app.get('/me', { token })).status, 401)
  })

  await t.test('a stream ends when its token has expired', async () => {
    const { token } = (await app.post('/token')).body
    const stream = await app.fetch('/held', { headers: { authorization: `Bearer ${token}` } })
    assert.equal(stream.status, 200)
    await clock.advance('7 d')
    assert.match(await stream.text(), /open/)
  })

  await t.test('Date in the code of a plugin tells the moved time', async () => {
    const { now, iso, isDate } = (await app.get('/now')).body
    isAbout(clock.now().getTime(), now)
    isAbout(Date.parse(iso), now)
    assert.equal(isDate, true)
  })

  await t.test('advance(): waits for handlers, or until they have begun; their time limits are real', async () => {
    await publish(app, 'timed.held', 'held', { delayMs: HOUR_MS })
    await clock.advance('1 h', { until: 'begun' })
    await clock.advance('10 h', { until: 'begun' })
    await assert.rejects(
      clock.advance('1 s', { timeoutMs: 300 }),
      /^Error: clock\.advance took 300 ms \(timeoutMs\): it has got to 2026-.* what is due there has not ended; \{ until: 'begun' \}/,
    )
    assert.deepEqual(await namesOf(app, 'held'), [])
    await app.post('/release')
    await clock.advance('1 s')
    assert.deepEqual(await namesOf(app, 'held'), ['held'])
    assert.deepEqual(await app.deadLetters(), [])
  })

  assert.ok(!app.logs.some(({ message }) => message.includes('clock was set')))
}

const sqlNow = async (app: App, route: string): Promise<number> => Date.parse(`${(await app.get(route)).body.now}Z`)

test('the clock of a plugin in the thread of the test', async (t) => {
  const RealDate = Date
  await keepsTime(t, await plugin(t, keepTime, { domain: TIMED, start: START }))
  await t.test('a second plugin has the same clock, and cannot begin elsewhere', async (t) => {
    await assert.rejects(plugin(t, keepTime, { domain: TIMED, start: START }), /another plugin of this test file runs/)
    const other = await plugin(t, keepTime, { domain: TIMED })
    const before = other.clock.now().getTime()
    assert.ok(before > startMs)
    await other.clock.advance('1 h')
    isAbout(Date.now(), before + HOUR_MS)
  })
  await t.test('advance() refuses what is no time', async (t) => {
    const { clock } = await plugin(t, keepTime, { domain: TIMED })
    for (const bad of ['soon', '5', '1 month', '', 'h', '2 h later', Number.NaN, new Date('x'), null])
      await assert.rejects(clock.advance(bad as string), /^TypeError: clock\.advance/, String(bad))
    await assert.rejects(clock.advance(-1), /would turn the time back/)
    await assert.rejects(clock.advance(1, { until: 'ended' as 'begun' }), /until must be 'handled' or 'begun'/)
    await assert.rejects(clock.advance(1, { timeoutMs: 0 }), /timeoutMs must be a number above 0/)
    await assert.rejects(clock.advance('20000000 weeks'), /after the last date/)
    for (const bad of ['2026-03-29T00:30:00', '2026-03-29', 'now', '1969-01-01T00:00:00Z', new Date('x')])
      await assert.rejects(plugin(t, keepTime, { start: bad }), /a time with its zone/, String(bad))
    const ended = await plugin(t, keepTime, { domain: TIMED })
    await clock.advance('1 s')
    await ended.stop()
    await clock.advance('1 s')
  })
  assert.notEqual(Date, RealDate)
})

test('the time is the system’s again after the last plugin of a file', async () => {
  const RealDate = Date
  const { now } = Date
  {
    await using app = await plugin(keepTime, { domain: TIMED })
    assert.equal(Date, RealDate)
    await app.clock.advance('3 d')
    assert.ok(new Date() instanceof RealDate)
    assert.notEqual(Date.now, now)
  }
  assert.equal(Date, RealDate)
  assert.equal(Date.now, now)
  const stopped = await plugin(keepTime, { domain: TIMED })
  await stopped.stop()
  await assert.rejects(stopped.clock.advance('1 h'), /the application has ended/)
  assert.equal(new Date(0).constructor, RealDate)
})

test('the clock of a process on SQLite', async (t) => {
  const app = await boot(t, { domains: [TIMED], lanes: 2, start: START })
  await keepsTime(t, app)
  await t.test('SQL tells the moved time, also in a process for heavy statements', async () => {
    for (const route of ['/sql-now', '/heavy-now', '/heavy-now']) {
      const told = await sqlNow(app, route)
      isAbout(app.clock.now().getTime(), told)
      await app.clock.advance('1 d')
    }
  })
})

describeOnPostgres('the clock of a process on PostgreSQL', (server) => {
  test('keeps time', async (t) => {
    const env = { ...server.env, TOOLS: 'postgres' }
    const app = await boot(t, { domains: [TIMED], lanes: 2, start: START, env })
    await keepsTime(t, app)
    await t.test('a statement that asks the server for the time is warned of', async () => {
      await app.get('/sql-now')
      assert.ok(
        app.logs.some(({ level, message }) => level === 'WARNING' && message.includes('SELECT CURRENT_TIMESTAMP')),
      )
    })
  })
})

test('the clock of a process without stored events', async (t) => {
  const env = { EVENT_BUS_DRIVER: 'in_process' }
  await keepsTime(t, await boot(t, { domains: [TIMED], start: START, env }))
})

test('advance(): waits for the lane that takes the place of one that died, so that no job is skipped', async (t) => {
  const app = await boot(t, { domains: [TIMED], start: START })
  await publish(app, 'timed.crash', 'crash', { delayMs: HOUR_MS })
  await app.clock.advance('3 d')
  assert.ok(app.logs.some(({ level, message }) => level === 'ERROR' && message.includes('late')))
  assert.equal((await namesOf(app, 'nightly')).length, 4)
  assert.equal((await namesOf(app, 'often')).length, 9)
})

test('a session ends when its refresh token has expired', async (t) => {
  const app = await boot(t, { domains: ['users'] })
  const ada = { email: 'ada@example.com', password: 'correct horse battery' }
  await app.post('/users', { name: 'Ada', ...ada })
  const { data } = (await app.post('/login', ada)).body
  await app.clock.advance('29 d')
  const refreshed = await app.post('/login/refresh', { refresh_token: data.refresh_token })
  assert.equal(refreshed.status, 200)
  await app.clock.advance('31 d')
  const late = await app.post('/login/refresh', { refresh_token: refreshed.body.data.refresh_token })
  assert.equal(late.status, 401)
})

test('advance() and start are refused where a time cannot be moved', async (t) => {
  const frozen = await boot(t, { domains: [TIMED], env: { LANE_FREEZE_BUILTINS: 'true' } })
  await assert.rejects(frozen.clock.advance('1 h'), /clock\.advance: LANE_FREEZE_BUILTINS keeps Date as it is/)
  const redis = { KV_URL: 'redis://127.0.0.1:1' }
  await assert.rejects(
    boot({ domains: [TIMED], start: START, env: { ...redis, TOOLS: 'redis-state' } }),
    /start: the tool state is redis-state, whose times \(ttlMs\) go by its server's clock/,
  )
  await assert.rejects(
    boot({ domains: [TIMED], start: START, env: { ...redis, EVENT_BUS_DRIVER: 'keyvalue_streams' } }),
    /start: EVENT_BUS_DRIVER=keyvalue_streams keeps events in Redis/,
  )
})
