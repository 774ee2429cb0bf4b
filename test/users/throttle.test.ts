import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LaneInfo } from '../../src/contracts/registry.ts'
import { describeOnDatabases } from '../support/databases.ts'
import { until } from '../support/until.ts'
import { CHEAP_AUTH, PASSWORD, UsersService } from '../support/users-service.ts'

const THROTTLED = { success: false, error: 'Too many attempts, try again later' }

const tools = [CHEAP_AUTH]

describeOnDatabases('throttled logins', (database) => {
  test('logins of one e-mail are counted once for all lanes', async (t) => {
    const service = await UsersService.start(
      t,
      database,
      { LOGIN_MAX_ATTEMPTS: '6', LOGIN_WINDOW_MS: '90500' },
      { tools },
    )
    const attempt = (email: string, password = 'wrong password') => service.post('/login', { email, password })

    const burstOf = async (email: string) => {
      await service.createUser(email)
      let pending = true
      const burst = Promise.all(Array.from({ length: 10 }, () => attempt(email))).finally(() => {
        pending = false
      })
      const busiest = new Map<number, number>()
      while (pending) {
        for (const { index, requests_in_flight } of (await service.heddle.json('/probe/lanes')).body as LaneInfo[]) {
          busiest.set(index, Math.max(busiest.get(index) ?? 0, requests_in_flight))
        }
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      const answers = await burst
      const statuses = answers.map(({ status }) => status).sort()
      assert.deepEqual(statuses, [401, 401, 401, 401, 401, 401, 429, 429, 429, 429])
      assert.equal(busiest.size, 2)
      return { answers, bothTookPart: Math.min(...busiest.values()) > 0 }
    }
    let { answers, bothTookPart } = await burstOf('ada@example.com')
    // On a busy machine one lane may be late for the whole burst: then another one tells.
    for (let more = 1; more <= 5 && !bothTookPart; more++) {
      ;({ answers, bothTookPart } = await burstOf(`ada${more}@example.com`))
    }
    assert.ok(bothTookPart, 'both lanes took part')
    for (const { status, headers, body } of answers) {
      if (status === 429) assert.deepEqual([headers.get('retry-after'), body], ['91', THROTTLED])
      else assert.equal(headers.get('retry-after'), null)
    }

    const right = await attempt('ADA@example.com', PASSWORD)
    assert.deepEqual([right.status, right.body], [429, THROTTLED], 'the right password and another case do not help')
    assert.equal((await attempt('nobody@example.com')).status, 401, 'another e-mail is not throttled')
  })

  test('attempts start anew after a good login, and when the window is over', async (t) => {
    const windowMs = 1500
    const service = await UsersService.start(
      t,
      database,
      { LOGIN_MAX_ATTEMPTS: '2', LOGIN_WINDOW_MS: String(windowMs) },
      { tools },
    )
    await service.createUser('ada@example.com')
    const attempt = async (password: string) =>
      (await service.post('/login', { email: 'ada@example.com', password })).status

    assert.equal(await attempt('wrong password'), 401)
    await service.logIn('ada@example.com')
    assert.equal(await attempt('wrong password'), 401)
    await service.logIn('ada@example.com')

    // A refused attempt does not make the window longer.
    const startedMs = Date.now()
    await until(async () => (await attempt('wrong password')) === 429, 'throttled')
    await until(async () => (await attempt(PASSWORD)) === 200, 'free again')
    assert.ok(Date.now() - startedMs >= windowMs - 10)
  })

  test('a limit that is no number stops the log-in plugin alone', async (t) => {
    const service = await UsersService.start(t, database, { LOGIN_MAX_ATTEMPTS: 'five' }, { lanes: 1, tools })
    const { plugins } = (await service.heddle.json('/probe/status')).body
    assert.equal(plugins['users.LogIn'].status, 'DEAD')
    assert.match(plugins['users.LogIn'].error, /LOGIN_MAX_ATTEMPTS/)
    assert.equal((await service.post('/login', {})).status, 404)
    await service.createUser('ada@example.com')
  })
})
