import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { CookieKeys, parseCookies } from '../../../src/runtime/endpoint/cookies.ts'
import { shareExchange } from '../../support/exchange-service.ts'
import { ask, jsonOf, type RawResponse } from '../../support/raw-client.ts'
import { until } from '../../support/until.ts'

const ORIGIN = 'http://localhost'

/** `trim` takes each of them for a blank. */
const UNICODE_BLANKS = ['\u00a0', '\u1680', '\u2000', '\u2028', '\u3000', '\ufeff', '\v', '\f']

const headersOf = ({ headers }: RawResponse, name: string): string[] => headers.get(name) ?? []

describe('the header Cookie', () => {
  it('is read pair by pair, the first of a name counts, and what is malformed is left as it is', () => {
    const text = 'a=1; b="two words"; a=2; c=%C3%A9; d=%zz; e=x=y; nothing; =empty;f= ; __proto__=p'
    const cookies = parseCookies(text)
    const expected = { a: '1', b: 'two words', c: 'é', d: '%zz', e: 'x=y', f: '', ['__proto__']: 'p' }
    assert.deepEqual(Object.entries(cookies), Object.entries(expected))
    assert.deepEqual(Object.entries(parseCookies(undefined)), [])
  })

  it('has no cookie whose name is no token: a blank of Unicode does not make it another’s', () => {
    for (const blank of UNICODE_BLANKS) {
      const header = `a=1; ${blank}__Host-session=evil; __Host-session${blank}=evil;${blank}b=2; c=${blank}3\t; \td\t=4`
      assert.deepEqual({ ...parseCookies(header) }, { a: '1', c: `${blank}3`, d: '4' }, JSON.stringify(blank))
    }
    assert.deepEqual({ ...parseCookies('user[1]=a; é=b; e(f)=c; __Secure-g=d') }, { '__Secure-g': 'd' })
  })

  it('has none of a name that only a host itself can set when it comes twice', () => {
    assert.deepEqual({ ...parseCookies('__Host-session=evil; a=1; __Host-session=mine; a=2') }, { a: '1' })
    assert.deepEqual({ ...parseCookies('__host-b=1; __host-b=2; __host-b=3; __Host-c=4') }, { '__Host-c': '4' })
  })
})

describe('signed cookies', () => {
  const old = new CookieKeys({ authSecretKey: undefined, authSecretKeys: `2025:${'o'.repeat(32)}` })
  const both = new CookieKeys({
    authSecretKey: 'u'.repeat(32),
    authSecretKeys: `2026:${'n'.repeat(32)},2025:${'o'.repeat(32)}`,
  })

  it('are accepted from each secret, and signed with the first', () => {
    assert.equal(both.verify('cart', old.sign('cart', 'a.b')), 'a.b')
    assert.equal(old.verify('cart', both.sign('cart', 'a.b')), null)
    const unnamed = new CookieKeys({ authSecretKey: 'u'.repeat(32), authSecretKeys: undefined })
    assert.equal(both.verify('cart', unnamed.sign('cart', '')), '')
  })

  it('hold for their name and value alone', () => {
    const signed = old.sign('cart', 'mine')
    assert.equal(old.verify('role', signed), null)
    assert.equal(old.verify('cart', signed.replace('mine', 'thine')), null)
    for (const bad of ['', '.', 'mine', signed.slice(0, -1), `${signed}A`, signed.toUpperCase()])
      assert.equal(old.verify('cart', bad), null, bad)
  })

  it('need a secret', () => {
    const none = new CookieKeys({ authSecretKey: undefined, authSecretKeys: undefined })
    assert.throws(() => none.sign('a', 'b'), { code: 'CONFIG_MISSING' })
    assert.equal(none.verify('a', old.sign('a', 'b')), null)
  })
})

describe('HTTP_CORS_CREDENTIALS', () => {
  it('is refused at the start where any origin may call', () => {
    const load = (origins: string) =>
      loadSettings({ HTTP_CORS_ORIGINS: origins, HTTP_CORS_CREDENTIALS: 'true', AUTH_SECRET_KEY: 'k'.repeat(32) })
    assert.throws(() => load('*'), /HTTP_CORS_CREDENTIALS: expected HTTP_CORS_ORIGINS to name its origins, got "\*"/)
    assert.equal(load('https://app.test').settings.httpCorsCredentials, true)
  })
})

describe('cookies', () => {
  const service = shareExchange({ HTTP_CORS_ORIGINS: 'https://app.test', HTTP_CORS_CREDENTIALS: 'true' })
  const send = async (method: string, path: string, headers: Record<string, string> = {}, body?: object) => {
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const text = body === undefined ? undefined : JSON.stringify(body)
    const answer = await ask(service().port, method, `/lane${path}`, { ...type, ...headers }, text)
    const set = headersOf(answer, 'set-cookie')[0] ?? ''
    return { status: answer.status, set, cookie: set.split(';')[0]!, body: jsonOf(answer), answer }
  }

  it('are read', async () => {
    const { body } = await send('GET', '/cookies', { cookie: 'a=1; b=%20' })
    assert.deepEqual(body, { a: '1', b: ' ' })
    assert.deepEqual((await send('GET', '/cookies')).body, {})
  })

  it('are signed, and null when they were changed', async () => {
    const { set, cookie } = await send('POST', '/sign', {}, { name: 'cart', value: 'ä; b' })
    assert.match(set, /^cart=[^;]+; Path=\/; SameSite=Lax; Max-Age=60; HttpOnly; Secure$/)
    const signed = async (header: string) => (await send('GET', '/signed?name=cart', { cookie: header })).body
    assert.equal(await signed(cookie), 'ä; b')
    assert.equal(await signed(cookie.replace('%C3%A4', 'a')), null)
    assert.equal(await signed('cart=1'), null)
    assert.equal(await signed('other=1'), null)
  })

  it('carry a session, which a login begins anew and a logout ends', async () => {
    const first = await send('POST', '/login', {}, { user: 'ada' })
    assert.match(first.set, /^__Host-session=[\w-]{43}; Path=\/; SameSite=Lax; Max-Age=600; HttpOnly; Secure$/)
    assert.deepEqual(headersOf(first.answer, 'cache-control'), ['private, no-store'])
    const visit = async (cookie: string) => (await send('GET', '/visit', { cookie })).body
    assert.deepEqual(await visit(first.cookie), { user: 'ada', count: 0 })
    assert.equal(await visit(`${first.cookie.slice(0, -1)}_`), null)
    assert.equal(await visit(''), null)

    // What requests change at a time is all there.
    const own = { cookie: first.cookie, origin: ORIGIN }
    await Promise.all([1, 2, 3].map(() => send('POST', '/visit', own)))
    assert.deepEqual(await visit(first.cookie), { user: 'ada', count: 3 })

    const second = await send('POST', '/login', own, { user: 'bob' })
    assert.notEqual(second.cookie, first.cookie)
    assert.equal(await visit(first.cookie), null, 'the former one has ended')
    const out = await send('POST', '/logout', { cookie: second.cookie, origin: ORIGIN })
    assert.match(out.set, /^__Host-session=; .*Max-Age=0/)
    assert.equal(await visit(second.cookie), null)
    assert.equal((await send('POST', '/visit', { cookie: second.cookie, origin: ORIGIN })).status, 401)
  })

  it('keep answers that are of a session out of caches', async () => {
    const { cookie } = await send('POST', '/login', {}, { user: 'ada' })
    const caching = async (path: string, headers: Record<string, string> = { cookie }) => {
      const { answer } = await send('GET', path, headers)
      const vary = headersOf(answer, 'vary').filter((name) => name !== 'origin')
      return [...headersOf(answer, 'cache-control'), ...vary]
    }
    const personal = ['private, no-store', 'cookie']
    for (const path of ['/visit', '/visit/required', '/visit/thrown', '/visit/file'])
      assert.deepEqual(await caching(path), personal, path)
    assert.deepEqual(await caching('/visit', {}), personal, 'of a stranger')
    assert.deepEqual(await caching('/visit/required', {}), personal, 'which refuses a stranger')
    assert.deepEqual(await caching('/visit/before'), ['public, max-age=1', 'accept, cookie'])
    assert.deepEqual(await caching('/visit/after'), ['private, max-age=2', 'accept-language, cookie'])
    assert.deepEqual(await caching('/cookies'), [])
  })

  it('do nothing for a request that another site’s page may have made', async () => {
    const { cookie } = await send('POST', '/login', {}, { user: 'eve' })
    const statuses = async (cases: Record<string, string>[]) => {
      const found = []
      for (const headers of cases) found.push((await send('POST', '/visit', { cookie, ...headers })).status)
      return found
    }
    const foreign: Record<string, string>[] = [
      {},
      { origin: 'https://evil.test' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'none' },
    ]
    assert.deepEqual(await statuses(foreign), [403, 403, 403, 403, 403, 403])
    const own: Record<string, string>[] = [
      { origin: ORIGIN },
      { origin: 'https://localhost' },
      { origin: 'https://app.test' },
      { 'sec-fetch-site': 'same-origin' },
    ]
    assert.deepEqual(await statuses(own), [200, 200, 200, 200])
    assert.equal((await send('GET', '/visit', { cookie })).status, 200)
    assert.equal((await send('POST', '/visit')).status, 401, 'without a session nothing can be forged')
  })

  it('end with their time', async () => {
    const { set, cookie } = await send('POST', '/brief')
    assert.match(set, /^brief=[\w-]{43}; Path=\/; SameSite=Strict; Max-Age=1; HttpOnly$/)
    await until(async () => (await send('GET', '/brief', { cookie })).body === null, 'the session has ended')
  })

  it('put off their end while they are used, if they shall, and not once they have ended', async () => {
    const { cookie } = await send('POST', '/rolling')
    const startedMs = performance.now()
    const first = await send('GET', '/rolling', { cookie })
    assert.equal(first.set, `${cookie}; Path=/; SameSite=Lax; Max-Age=4; HttpOnly`)
    assert.equal((await send('GET', '/rolling', { cookie })).set, '', 'not with each request')
    await until(async () => {
      assert.deepEqual((await send('GET', '/rolling', { cookie })).body, { user: 'x', count: 0 })
      return performance.now() - startedMs > 4500
    }, 'more than its time')
    await send('DELETE', '/rolling', { cookie, origin: ORIGIN })
    const gone = await send('GET', '/rolling', { cookie })
    assert.deepEqual([gone.body, gone.set], [null, ''])
  })
})
