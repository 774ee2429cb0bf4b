import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeOnDatabases } from '../../support/databases.ts'
import { CHEAP_AUTH, PASSWORD, UsersService } from '../../support/users-service.ts'

describeOnDatabases('sessions', (database) => {
  test('a refresh token works once, and one that comes again ends its session', async (t) => {
    const service = await UsersService.start(t, database, { AUTH_ISSUER: 'shop' }, { lanes: 2, tools: [CHEAP_AUTH] })
    const email = 'ada@example.com'
    await service.createUser(email)
    const logIn = async () => (await service.post('/login', { email, password: PASSWORD })).body.data
    const refresh = (refresh_token: string) => service.post('/login/refresh', { refresh_token })
    const statusOf = async (token: string) => (await service.as(token, 'GET', '/users/me')).status
    /** As two requests of one client may come to two lanes. */
    const statuses = async (token: string) => [
      ...new Set(await Promise.all(Array.from({ length: 8 }, () => statusOf(token)))),
    ]

    await t.test('answers with tokens are kept out of caches, and say how long the token lives', async () => {
      const answer = await service.post('/login', { email, password: PASSWORD })
      const next = await refresh(answer.body.data.refresh_token)
      for (const { status, headers, body } of [answer, next]) {
        assert.deepEqual([status, headers.get('cache-control')], [200, 'no-store'])
        assert.deepEqual(Object.keys(body.data).sort(), ['expires_in', 'refresh_token', 'token'])
        assert.equal(body.data.expires_in, 3600)
      }
    })

    await t.test('each refresh token is replaced by the next, and both access tokens are good', async () => {
      const first = await logIn()
      const second = (await refresh(first.refresh_token)).body.data
      const third = (await refresh(second.refresh_token)).body.data
      for (const { token } of [first, second, third]) assert.deepEqual(await statuses(token), [200])
    })

    await t.test(
      'one that comes again ends the session and revokes all of its access tokens, of no other',
      async () => {
        const [first, other] = [await logIn(), await logIn()]
        const second = (await refresh(first.refresh_token)).body.data
        const third = (await refresh(second.refresh_token)).body.data
        const stolen = await refresh(first.refresh_token)
        assert.deepEqual(
          [stolen.status, stolen.body.error, stolen.headers.get('cache-control')],
          [401, 'This refresh token is not valid any more: log in again', 'no-store'],
        )
        for (const { token } of [first, second, third]) assert.deepEqual(await statuses(token), [401])
        assert.equal((await refresh(third.refresh_token)).status, 401)
        assert.deepEqual(await statuses(other.token), [200])
        assert.equal((await refresh(other.refresh_token)).status, 200)
      },
    )

    await t.test('of those that come at once with one token at most one gets the next', async () => {
      const { refresh_token } = await logIn()
      const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(refresh_token)))
      assert.ok(answers.filter(({ status }) => status === 200).length <= 1)
      for (const { body } of answers) {
        if (!body.success) continue
        assert.deepEqual(await statuses(body.data.token), [401])
        assert.equal((await refresh(body.data.refresh_token)).status, 401)
      }
    })

    await t.test('who logs out is out, and what is no refresh token is none', async () => {
      const grant = await logIn()
      assert.equal((await service.post('/logout', { refresh_token: grant.refresh_token })).status, 200)
      assert.deepEqual(await statuses(grant.token), [401])
      assert.equal((await refresh(grant.refresh_token)).status, 401)
      for (const wrong of ['', 'x', grant.token.slice(0, 200), `${grant.refresh_token}x`])
        assert.equal((await refresh(wrong)).status, 401, wrong)
    })

    await t.test('an account that is gone takes its sessions and their access tokens with it', async () => {
      const { token, refresh_token } = await logIn()
      const elsewhere = await logIn()
      const { id } = (await service.as(token, 'GET', '/users/me')).body.data
      assert.equal((await service.as(token, 'DELETE', `/users/${id}`)).status, 200)
      assert.deepEqual([await statuses(token), await statuses(elsewhere.token)], [[401], [401]])
      assert.equal((await refresh(refresh_token)).status, 401)
    })
  })
})
