import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const IDENTIFIED = fileURLToPath(new URL('../../fixtures/identified', import.meta.url))

describe('http.identify', () => {
  const shared = shareService((owner) =>
    startHeddle(owner, {
      domains: [IDENTIFIED, SHIPPED],
      lanes: 1,
      env: { HISTORY_ENABLED: 'true', HISTORY_SAMPLE: '1' },
    }),
  )
  const get = (path: string, headers: Record<string, string> = {}) => shared().json(path, { headers })
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const asked = async (): Promise<number> => (await get('/club/asked')).body.times

  async function post(path: string, headers: Record<string, string> = {}, body: object = {}) {
    const json = { 'content-type': 'application/json', 'idempotency-key': 'one', origin: shared().url }
    const answer = await shared().json(path, {
      method: 'POST',
      headers: { ...json, ...headers },
      body: JSON.stringify(body),
    })
    return { ...answer, isReplay: answer.headers.get('idempotency-replayed') === 'true' }
  }

  async function logIn(id: string) {
    const { headers } = await post('/club/session', {}, { id })
    return { cookie: headers.get('set-cookie')!.split(';')[0]! }
  }

  test('says who calls to handlers, guards, streams and sockets', async () => {
    assert.deepEqual((await get('/club/me')).body, { me: null })
    assert.deepEqual((await get('/club/me', bearer('ada'))).body, { me: { id: 'ada', isAdmin: true } })
    assert.deepEqual((await get('/club/me', await logIn('bob'))).body, { me: { id: 'bob', isAdmin: false } })
    assert.equal((await get('/club/admin')).status, 401)
    assert.deepEqual((await get('/club/admin', bearer('ada'))).body, { isAdmin: true })
    assert.equal((await get('/club/news')).status, 401)
    const news = await shared().fetch('/club/news', { headers: bearer('ada-1') })
    assert.match(await news.text(), /"user":"ada"/, 'the stream, which ends when the time of its user is up')
    const openNews = await shared().fetch('/club/open-news', {
      headers: bearer('ada-1'),
      signal: AbortSignal.timeout(5_000),
    })
    assert.match(await openNews.text(), /"user":"ada"/, 'a stream without a guard')
    const socket = new WebSocket(`${shared().url.replace('http', 'ws')}/club/talk`)
    const message = await new Promise<string>((resolve, reject) => {
      socket.onmessage = ({ data }) => resolve(String(data))
      socket.onerror = () => reject(new Error('The socket failed'))
    })
    socket.close()
    assert.equal(message, '{}')
  })

  test('is asked once a request, and only where something reads it', async () => {
    const before = await asked()
    for (const path of ['/club/path', '/club/files/meet.ts'])
      assert.equal((await shared().fetch(path, { headers: bearer('ada') })).status, 200)
    await post('/club/said', bearer('ada'))
    assert.equal(await asked(), before)
    await get('/club/admin', bearer('ada'))
    assert.equal(await asked(), before + 1)
  })

  test('scopes stored answers by who calls, whatever he says it with', async () => {
    for (const path of ['/club/meetings', '/club/open-meetings', '/visits']) {
      const as = (name: string) => (path === '/visits' ? { 'x-name': name } : bearer(name))
      const first = await post(path, as('bob'))
      const other = await post(path, as('eve'))
      assert.deepEqual([first.status, first.isReplay, other.status, other.isReplay], [200, false, 200, false], path)
      assert.notEqual(first.body.id, other.body.id)
      const again = await post(path, as('bob'))
      assert.deepEqual([again.isReplay, again.body.id], [true, first.body.id])
      if (path === '/visits') continue
      const inBrowser = await post(path, await logIn('bob'))
      assert.deepEqual([inBrowser.isReplay, inBrowser.body.id], [true, first.body.id])
    }
    assert.equal((await post('/club/meetings')).status, 401)
    const stranger = await post('/club/open-meetings')
    assert.deepEqual([stranger.isReplay, (await post('/club/open-meetings')).isReplay], [false, true])
    assert.equal((await post('/club/said', bearer('bob'))).body.id, (await post('/club/said', bearer('eve'))).body.id)
  })

  test('may refuse, and lets nobody in with a user who is none', async () => {
    const wrong = await get('/club/me', bearer('wrong'))
    assert.deepEqual([wrong.status, wrong.body.error], [401, 'The token is not valid'])
    assert.equal((await get('/club/me', bearer('odd'))).status, 500)
    const told = shared().logs.map(({ msg }) => msg)
    assert.ok(
      told.some((msg) => /\/club\/me in its identify \(.*club\/domain\.ts:\d+\) failed: It returned a user/.test(msg)),
      told.join('\n'),
    )
  })

  test('counts where it is nearest, and is said once', async () => {
    assert.deepEqual((await get('/who', { 'x-name': 'ada' })).body, { by: 'plugin' })
    const { plugins } = (await get('/system/status')).body
    assert.match(plugins['visitors.SayWhoTwice'].error, /who calls is said once, and was at .*say-who-twice\.ts:5/)
  })

  test('of a route with authValidator alone is the sub of its claims', async () => {
    const { body } = await get('/club/token', bearer('ada'))
    assert.deepEqual(body.user, { id: 'ada', isAdmin: true }, 'the domain says who calls')
  })

  test('is in the history', async () => {
    await get('/club/me', bearer('grace'))
    await until(async () => (await get('/system/requests?user=grace')).body.length === 1, 'her request')
  })

  test('stands in the API documents', async () => {
    const { paths, components } = (await get('/system/openapi.json')).body
    const security = (path: string, method = 'get') => paths[path][method].security
    const both = [{ bearer: [] }, { '__Host-member': [] }]
    assert.deepEqual(security('/club/admin'), both)
    assert.deepEqual(security('/club/me'), [{}, ...both])
    assert.deepEqual(security('/club/path'), [])
    assert.deepEqual(security('/club/token'), [{ bearer: [] }])
    assert.deepEqual(security('/visits', 'post'), [{ 'x-name': [] }])
    assert.deepEqual(security('/who'), [])
    const { securitySchemes } = components
    assert.deepEqual(Object.keys(securitySchemes), ['bearer', '__Host-member', 'x-name'])
    assert.deepEqual(securitySchemes['x-name'], { type: 'apiKey', in: 'header', name: 'x-name' })
  })
})
