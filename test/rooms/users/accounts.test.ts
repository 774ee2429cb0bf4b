import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeOnDatabases } from '../../support/databases.ts'
import { until } from '../../support/until.ts'
import { CHEAP_AUTH, PASSWORD, UsersService } from '../../support/users-service.ts'

describeOnDatabases('accounts', (database) => {
  test('an account is created, logged in to, shown and deleted', async (t) => {
    const service = await UsersService.start(t, database, {}, { tools: [CHEAP_AUTH] })

    await t.test('created: without the password, with a lower-case e-mail and a trimmed name', async () => {
      const { status, body } = await service.post('/users', {
        name: ' Ada ',
        email: 'Ada@Example.com',
        password: PASSWORD,
        id: 'mine',
        password_hash: 'mine',
      })
      assert.equal(status, 201)
      const { id, created_at, ...rest } = body.data
      assert.match(id, /^[0-9a-f-]{36}$/)
      assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.deepEqual(rest, { name: 'Ada', email: 'ada@example.com' })
      assert.equal(body.success, true)
    })

    await t.test('a sign-up that is sent again with its key makes one account', async () => {
      const user = { name: 'Ida', email: 'ida@example.com', password: PASSWORD }
      const key = { 'idempotency-key': 'sign-up' }
      const [first, again] = [await service.post('/users', user, key), await service.post('/users', user, key)]
      assert.deepEqual([again.status, again.body], [201, first.body])
      assert.equal(again.headers.get('idempotency-replayed'), 'true')
      assert.equal((await service.post('/users', user)).status, 409)
    })

    await t.test('a taken e-mail is refused in any case, also when both come at once', async () => {
      for (const email of ['ada@example.com', 'ADA@EXAMPLE.COM']) {
        const { status, body } = await service.post('/users', { name: 'Eve', email, password: PASSWORD })
        assert.deepEqual([status, body], [409, { success: false, error: 'This e-mail is taken' }])
      }
      const rivals = ['rival@example.com', 'Rival@example.com', 'RIVAL@example.com'].map((email) =>
        service.post('/users', { name: 'Rival', email, password: PASSWORD }),
      )
      const statuses = (await Promise.all(rivals)).map(({ status }) => status)
      assert.deepEqual(statuses.sort(), [201, 409, 409])
    })

    await t.test("a taken e-mail alarms nobody: the fault is the caller's", async () => {
      // Who is welcomed meanwhile has the database, too, and the last call counts.
      const db = await until(async () => {
        await service.post('/users', { name: 'Eve', email: 'ada@example.com', password: PASSWORD })
        const { tools } = (await service.heddle.json('/system/status')).body
        return tools.db.status === 'DEAD' ? tools.db : null
      }, 'the refusal is the last call')
      assert.match(db.message, /unique/i)
      assert.equal(db.fault, 'caller')
      assert.equal((await service.heddle.json('/system/health/ready')).status, 200)
      await until(async () => {
        const text = await (await service.heddle.fetch('/system/metrics/prometheus')).text()
        assert.match(text, /^heddle_tool_healthy\{tool="db"\} 1$/m)
        const [errors, refusals] = ['errors', 'refusals'].map(
          (what) =>
            new RegExp(`^heddle_tool_${what}_total\\{tool="db",method="execute"\\} (\\d+)$`, 'm').exec(text)?.[1],
        )
        return errors !== undefined && errors !== '0' && errors === refusals
      }, 'all errors are counted as refusals')
      await service.post('/users', { name: 'Zoe', email: 'zoe@example.com', password: PASSWORD })
      const { status, fault } = (await service.heddle.json('/system/status')).body.tools.db
      assert.deepEqual([status, fault], ['OK', null])
    })

    await t.test('input that breaks the rules is refused with the place of each fault', async () => {
      const faults: [object, string[]][] = [
        [{}, ['name', 'email', 'password']],
        [{ name: '  ', email: 'b@example.com', password: PASSWORD }, ['name']],
        [{ name: 'a\u0000b', email: 'b@example.com', password: PASSWORD }, ['name']],
        [{ name: 'Bob', email: 'no e-mail', password: PASSWORD }, ['email']],
        [{ name: 'Bob', email: `${'b'.repeat(250)}@example.com`, password: PASSWORD }, ['email']],
        [{ name: 'Bob', email: 'b@example.com', password: 'short' }, ['password']],
        [{ name: 'Bob', email: 'b@example.com', password: 'x'.repeat(129) }, ['password']],
        [{ name: 1, email: ['b@example.com'], password: PASSWORD }, ['name', 'email']],
      ]
      for (const [input, paths] of faults) {
        const { status, body } = await service.post('/users', input)
        assert.equal(status, 422, JSON.stringify(input))
        assert.deepEqual([body.success, body.error], [false, 'Validation failed'])
        assert.deepEqual(
          [...new Set(body.details.map(({ path }: { path: string }) => path))].sort(),
          [...paths].sort(),
          JSON.stringify(body),
        )
      }
    })

    await t.test('logged in to: the token shows the own account, whatever the case of the e-mail', async () => {
      const token = await service.logIn('ADA@example.com')
      const { status, body } = await service.as(token, 'GET', '/users/me')
      assert.equal(status, 200)
      assert.deepEqual(Object.keys(body.data).sort(), ['created_at', 'email', 'id', 'name'])
      assert.equal(body.data.email, 'ada@example.com')
    })

    await t.test('a wrong password and an unknown e-mail get the same answer for the same work', async () => {
      const before = await service.calls('auth.verifyPassword')
      const refusal = [401, { success: false, error: 'Wrong e-mail or password' }]
      for (const credentials of [
        { email: 'ada@example.com', password: 'wrong password' },
        { email: 'ada@example.com', password: '' },
        { email: 'nobody@example.com', password: PASSWORD },
      ]) {
        const { status, body } = await service.post('/login', credentials)
        assert.deepEqual([status, body], refusal)
      }
      assert.equal((await service.calls('auth.verifyPassword')) - before, 3)
      assert.equal((await service.post('/login', { email: 'ada@example.com' })).status, 422)
    })

    await t.test('anybody sees the public fields alone', async () => {
      const { id, created_at } = await service.createUser('public@example.com')
      const { status, body } = await service.heddle.json(`/users/${id}`)
      assert.deepEqual([status, body], [200, { success: true, data: { id, name: 'Ada', created_at } }])
      for (const unknown of ['00000000-0000-0000-0000-000000000000', 'x%27%20OR%201=1', '%F0%9F%A6%8A']) {
        const { status, body } = await service.heddle.json(`/users/${unknown}`)
        assert.deepEqual([status, body], [404, { success: false, error: 'User not found' }])
      }
    })

    await t.test('only its owner deletes an account, and its token is of no use then', async () => {
      const victim = await service.createUser('victim@example.com')
      const owner = await service.createUser('owner@example.com')
      const token = await service.logIn('owner@example.com')

      const other = await service.as(token, 'DELETE', `/users/${victim.id}`)
      assert.deepEqual([other.status, other.body.error], [403, 'You can delete your own account only'])
      assert.equal((await service.heddle.json(`/users/${victim.id}`)).status, 200)

      const own = await service.as(token, 'DELETE', `/users/${owner.id}`)
      assert.deepEqual([own.status, own.body], [200, { success: true, data: { id: owner.id } }])
      assert.equal((await service.heddle.json(`/users/${owner.id}`)).status, 404)
      await service.published('user.deleted', 'id', owner.id)

      const gone = [401, { success: false, error: 'Invalid or expired token' }]
      for (const [method, path] of [
        ['GET', '/users/me'],
        ['DELETE', `/users/${owner.id}`],
      ] as const) {
        const { status, body } = await service.as(token, method, path)
        assert.deepEqual([status, body], gone, `${method} ${path}`)
      }
      assert.equal((await service.post('/login', { email: 'owner@example.com', password: PASSWORD })).status, 401)
      await service.createUser('owner@example.com')
    })

    await t.test('no token and one that is none are refused in the words of the runtime', async () => {
      const { id } = await service.createUser('token@example.com')
      for (const [method, path] of [
        ['GET', '/users/me'],
        ['DELETE', `/users/${id}`],
      ] as const) {
        const missing = await service.heddle.json(path, { method })
        assert.deepEqual([missing.status, missing.body.error], [401, 'Missing authorization token'])
        const { status, body } = await service.as('garbage', method, path)
        assert.deepEqual([status, body.error], [401, 'Invalid or expired token'])
      }
      assert.equal((await service.heddle.json(`/users/${id}`)).status, 200)
    })
  })
})
