// What a client gets of what a handler says, returns and throws.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ask,
  assertFailure,
  headerOf,
  jsonOf,
  RawConnection,
  type RawResponse,
  requestText,
} from '../../support/raw-client.ts'
import { assertAnswers, shareHeddle } from '../../support/shared-process.ts'
import { until } from '../../support/until.ts'

const heddle = shareHeddle({
  expectedError: ({ msg }) => /^\/[wp]\/(say|throw|throw-late|not-json|private|bytes\/:kind) failed: /.test(msg),
})
const INTERNAL = 'Internal server error'
const EVIL = [
  'a\r\nx-injected: 1',
  'a\nx-injected: 1',
  'a\rx-injected: 1',
  'a\r\n\r\nbody',
  'a\0b',
  'a\x7fb',
  'a\u0100',
]

for (const [thread, prefix] of [
  ['lane', '/w'],
  ['primary', '/p'],
] as const) {
  describe(`answer of a handler in the ${thread}`, () => {
    const get = (path: string, headers?: Record<string, string>): Promise<RawResponse> =>
      ask(heddle.port, 'GET', prefix + path, headers)
    const say = (what: object): Promise<RawResponse> =>
      ask(heddle.port, 'POST', `${prefix}/say`, { 'content-type': 'application/json' }, JSON.stringify(what))

    it('is 200, 400 when it says success: false, and what setStatus says above all', async () => {
      for (const [what, status] of [
        [{ result: { success: true } }, 200],
        [{ result: { success: false, error: 'No' } }, 400],
        [{ result: { success: false, error: 'Taken' }, status: 409 }, 409],
        [{ result: { success: true }, status: 201 }, 201],
        [{ result: { success: false }, status: 200 }, 200],
        [{ result: { success: 0 } }, 200],
        [{ result: { ok: 1 }, status: 599 }, 599],
      ] as const)
        assert.equal((await say(what)).status, status, JSON.stringify(what))
    })

    it('is the returned value as it is, of any size', async () => {
      for (const result of [{ a: 'é\u2028"', b: [1, null] }, [1, 2], 'text', 17, false, null])
        assert.deepEqual(jsonOf(await say({ result })), result)
      assert.equal((await say({})).body.toString(), 'null')
      assert.equal(jsonOf(await get('/thenable')), 'later')
      for (const bytes of [1, 65_535, 65_536, 65_537, 1_048_577, 5_000_000]) {
        const { body } = await get(`/large/${bytes}`)
        assert.ok(body.equals(Buffer.alloc(bytes, 'heddle')), `${bytes} bytes came as ${body.length}, or changed`)
        assert.equal(jsonOf(await get(`/large-json/${bytes}`)).text, 'é'.repeat(bytes))
        const head = await ask(heddle.port, 'HEAD', `${prefix}/large/${bytes}`)
        assert.equal(headerOf(head, 'content-length'), String(bytes))
      }
    })

    it('has no body with 204 and 304', async () => {
      for (const status of [204, 304]) {
        const response = await say({ status, result: { a: 1 } })
        assert.deepEqual([response.status, response.body.length], [status, 0])
      }
    })

    it('is 500 for a status out of range', async () => {
      for (const status of [0, 100, 199, 600, 1000, 200.5, '200'])
        assertFailure(await say({ status, result: {} }), 500, INTERNAL)
    })

    it('carries the headers that the handler set, the last one of a name', async () => {
      const headers = { 'X-One': 'a', 'x-one': 'b', 'x-tab': 'a\tb', 'x-empty': '', 'cache-control': 'no-store' }
      const response = await say({ result: 1, headers })
      for (const [name, value] of Object.entries(headers).slice(1)) assert.equal(headerOf(response, name), value)
    })

    it('tells a content type apart from headers whose names end like it', async () => {
      const typesOf = async (headers: object) => {
        const response = await say({ result: 1, headers })
        return ['content-type', 'x-content-type'].map((name) => headerOf(response, name))
      }
      assert.deepEqual(await typesOf({ 'x-content-type': 'text/html' }), [
        'application/json; charset=utf-8',
        'text/html',
      ])
      const twice = { 'x-content-type': 'a', 'Content-Type': 'text/plain', 'content-type': 'text/csv' }
      assert.deepEqual(await typesOf(twice), ['text/csv', 'a'])
    })

    it('adds a content security policy to pages only', async () => {
      const policyOf = async (headers: object) => headerOf(await say({ result: 1, headers }), 'content-security-policy')
      assert.match((await policyOf({ 'content-type': 'text/html; charset=utf-8' }))!, /default-src 'self'/)
      for (const headers of [{}, { 'x-content-type': 'text/html' }]) assert.equal(await policyOf(headers), undefined)
      const own = { 'content-type': 'text/html', 'content-security-policy': "default-src 'none'" }
      assert.equal(await policyOf(own), "default-src 'none'")
    })

    it('drops headers that belong to the listener', async () => {
      const dropped = { connection: 'close', 'keep-alive': 'timeout=1', upgrade: 'h2c', trailer: 'x' }
      const framing = { 'Content-Length': '1', 'transfer-encoding': 'chunked', date: 'never' }
      const forged = { 'x-request-id': 'forged', 'x-content-type-options': 'sniff' }
      const response = await say({ result: 'text', headers: { ...dropped, ...framing, ...forged } })
      assert.equal(response.body.toString(), '"text"')
      assert.notEqual(headerOf(response, 'x-request-id'), 'forged')
      assert.match(headerOf(response, 'date')!, / GMT$/)
      for (const name of Object.keys(dropped)) assert.equal(headerOf(response, name), undefined)
    })

    it('lets nothing be injected through a header, a redirect or a cookie', async () => {
      for (const value of EVIL) {
        for (const what of [
          ...['x-a', 'content-type', 'connection'].map((name) => ({ headers: { [name]: value } })),
          ...['path', 'domain', 'sameSite'].map((name) => ({ cookies: [['a', 'b', { [name]: value }]] })),
          { cookies: [[value, 'b']] },
          ...(/^[\x20-\x7e\u0100-]*$/.test(value) ? [] : [{ redirect: [`/${value}`] }]),
        ])
          assertFailure(await say({ result: 1, ...what }), 500, INTERNAL)
        // A cookie's value is encoded instead: it arrives whole, and in one line.
        const cookie = headerOf(await say({ result: 1, cookies: [['a', value]] }), 'set-cookie')!
        assert.equal(decodeURIComponent(/^a=([^;]*);/.exec(cookie)![1]!), value)
      }
      for (const name of ['', 'a b', 'a:', 'a\r\nb', 'é', '('])
        assertFailure(await say({ result: 1, headers: { [name]: 'x' } }), 500, INTERNAL)
      await assertAnswers(heddle.port)
    })

    it('sets cookies that are HttpOnly, Secure and SameSite=Lax unless told otherwise', async () => {
      const open = { httpOnly: false, secure: false, sameSite: 'Strict' }
      const options = { ...open, maxAgeSec: 60, path: '/p', domain: 'd.test' }
      const { headers } = await say({
        result: 1,
        cookies: [
          ['a', '1'],
          ['b', 'x y;z', options],
        ],
      })
      const [first, second] = headers.get('set-cookie')!.map((cookie) => cookie.split('; ').sort())
      assert.deepEqual(first, ['HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure', 'a=1'])
      assert.deepEqual(second, ['Domain=d.test', 'Max-Age=60', 'Path=/p', 'SameSite=Strict', 'b=x%20y%3Bz'])
    })

    it('redirects', async () => {
      const found = await say({ redirect: ['/elsewhere?a=b#c'] })
      assert.deepEqual([found.status, headerOf(found, 'location'), found.body.length], [302, '/elsewhere?a=b#c', 0])
      assert.equal((await say({ redirect: ['https://x.test/', 308] })).status, 308)
    })

    it('redirect(): encodes what a URL cannot hold, and nothing else', async () => {
      const locations: [given: string, sent: string][] = [
        ['/日本', '/%E6%97%A5%E6%9C%AC'],
        ['/日本?q=é&x=%C3%A9#ü', '/%E6%97%A5%E6%9C%AC?q=%C3%A9&x=%C3%A9#%C3%BC'],
        ['/a b', '/a%20b'],
        [' /a', '%20/a'],
        // Browsers drop a tab: this would be another host.
        ['/\t/evil.example', '/%09/evil.example'],
        ['/%E6%97%A5/%zz/100%', '/%E6%97%A5/%25zz/100%25'],
        ['/\u{1f600}', '/%F0%9F%98%80'],
        ['/"<>\\^`{|}', '/%22%3C%3E%5C%5E%60%7B%7C%7D'],
        ["/-._~!$&'()*+,;=:@/?[]#", "/-._~!$&'()*+,;=:@/?[]#"],
        ['https://münchen.example:8443/ü', 'https://xn--mnchen-3ya.example:8443/%C3%BC'],
        ['HTTP://ü@日本.example?é', 'HTTP://%C3%BC@xn--wgv71a.example?%C3%A9'],
        ['//bücher.example', '//xn--bcher-kva.example'],
        ['https://[::1]:8000/é', 'https://[::1]:8000/%C3%A9'],
        ['app://日本/é', 'app://%E6%97%A5%E6%9C%AC/%C3%A9'],
        ['mailto:ada@bücher.example', 'mailto:ada@b%C3%BCcher.example'],
        ['é', '%C3%A9'],
        ['', ''],
      ]
      for (const [given, sent] of locations) {
        const answer = await say({ redirect: [given] })
        assert.deepEqual([answer.status, headerOf(answer, 'location')], [302, sent], given)
      }
      for (const given of [
        '/\ud800',
        'https://a b.example/',
        'https://a\tb.example/',
        'https://é<.example/',
        '/é\n',
        '/\x7fé',
      ])
        assertFailure(await say({ redirect: [given] }), 500, INTERNAL)
    })

    it('is bytes of any value with their type, and 500 for what are none', async () => {
      const response = await get('/binary')
      assert.equal(headerOf(response, 'content-type'), 'application/octet-stream')
      assert.deepEqual(
        [...response.body],
        Array.from({ length: 256 }, (_, byte) => byte),
      )
      assert.equal((await get('/bytes/empty')).body.length, 0)
      assert.deepEqual([...(await get('/bytes/shared')).body], [0, 0, 0])
      // More that cannot be read: test/rooms/hostile/odd-values.test.ts.
      for (const kind of ['text', 'array', 'number', 'object', 'buffer', 'words', 'null'])
        assertFailure(await get(`/bytes/${kind}`), 500, INTERNAL)
      assert.ok(!heddle.logs.some(({ msg }) => /^Lane \d+ died/.test(msg)))
    })

    it('is 500 when the handler throws; the log knows why, the client does not', async () => {
      for (const [path, secret] of [
        ['throw', 'secret of a handler'],
        ['throw-late', 'secret of an async handler'],
        ['not-json', 'a bigint as big, which JSON cannot hold'],
      ] as const) {
        const requestId = `fault-${prefix.slice(1)}-${path}`
        const response = await get(`/${path}`, { 'x-request-id': requestId })
        assertFailure(response, 500, INTERNAL)
        assert.equal(response.head.includes('secret'), false)
        const isTold = () => heddle.logs.find((entry) => entry.request_id === requestId)
        const line = await until(isTold, `the log of ${path}`)
        assert.ok(line.msg.includes(secret), line.msg)
        assert.match(line.identity, /^probe\.AnswerIn/)
        assert.match(String(line.stack), /routes\.ts|json-answer/)
      }
    })

    it('asks for a token before it looks at the input, and is 500 when the validator throws', async () => {
      const headers = { 'content-type': 'application/json' }
      const missing = await ask(heddle.port, 'POST', `${prefix}/private`, headers, '{')
      assertFailure(missing, 401, 'Missing authorization token')
      assert.equal(headerOf(missing, 'www-authenticate'), 'Bearer')
      const enter = (token: string) => get('/private', { authorization: `Bearer ${token}` })
      for (const token of ['bad', 'false']) assertFailure(await enter(token), 401, 'Invalid or expired token')
      assert.deepEqual(jsonOf(await enter('good')).data.data, { _auth: { sub: 'user-1' } })
      assertFailure(await enter('broken'), 500, INTERNAL)
    })

    it('is 504 when the time is up: the signal is aborted, the late result goes nowhere', async () => {
      const key = `overtime${prefix.slice(1)}`
      const connection = await RawConnection.open(heddle.port)
      const startedMs = performance.now()
      await connection.send(requestText('GET', `${prefix}/overtime/${key}`))
      assertFailure(await connection.response(), 504, 'The handler did not answer in time')
      const tookMs = performance.now() - startedMs
      assert.ok(tookMs >= 240 && tookMs < 2_000, `${tookMs} ms`)
      const isAborted = async () => jsonOf(await get(`/state/${key}:aborted`)).data === 1
      await until(isAborted, 'the signal is aborted, the handler goes on')
      // The next answer on the connection belongs to the next request.
      await connection.send(requestText('GET', `${prefix}/echo/next`))
      assert.equal(jsonOf((await connection.response())!).data.data.id, 'next')
      assert.equal(connection.rest.length, 0)
      connection.drop()
    })

    it('takes over a request id of at most 128 visible ASCII characters, and makes one otherwise', async () => {
      const idOf = async (id: string) => {
        const response = await get('/echo', { 'x-request-id': id })
        const own = headerOf(response, 'x-request-id')!
        assert.equal(jsonOf(response).data.requestId, own)
        return own
      }
      for (const id of ['a', '!~"<>{}', 'x'.repeat(128)]) assert.equal(await idOf(id), id)
      const made = new Set<string>()
      for (const id of ['', 'x'.repeat(129), 'a b', 'a\tb', 'é', 'a\xffb', '\xc2\xa0']) made.add(await idOf(id))
      assert.equal(made.size, 7)
      for (const id of made) assert.match(id, /^req_[\w-]+$/)
      const nowhere = await ask(heddle.port, 'GET', '/nowhere', { 'x-request-id': 'mine' })
      assert.equal(headerOf(nowhere, 'x-request-id'), 'mine')
    })
  })
}
