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
  expectedError: ({ msg }) => /^\/[wp]\/(say|throw|throw-late|not-json|private|odd\/:kind) failed: /.test(msg),
})
const INTERNAL = 'Internal server error'

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
      assert.equal((await say({ result: { success: true } })).status, 200)
      assert.equal((await say({ result: { success: false, error: 'No' } })).status, 400)
      assert.equal((await say({ result: { success: false, error: 'Taken' }, status: 409 })).status, 409)
      assert.equal((await say({ result: { success: true }, status: 201 })).status, 201)
      assert.equal((await say({ result: { success: false }, status: 200 })).status, 200)
      assert.equal((await say({ result: { success: 0 } })).status, 200)
      assert.equal((await say({ result: { ok: 1 }, status: 599 })).status, 599)
    })

    it('is the returned value as it is', async () => {
      for (const result of [{ a: 'é\u2028"', b: [1, null] }, [1, 2], 'text', 17, false, null]) {
        const response = await say({ result })
        assert.deepEqual(jsonOf(response), result)
      }
      assert.equal((await say({})).body.toString(), 'null')
    })

    it('has no body with 204 and 304', async () => {
      for (const status of [204, 304]) {
        const response = await say({ status, result: { a: 1 } })
        assert.equal(response.status, status)
        assert.equal(response.body.length, 0)
      }
    })

    it('is 500 for a status out of range', async () => {
      for (const status of [0, 100, 199, 600, 1000, 200.5, '200']) {
        assertFailure(await say({ status, result: {} }), 500, INTERNAL)
      }
    })

    it('carries the headers that the handler set, the last one of a name', async () => {
      const response = await say({
        result: 1,
        headers: [
          ['X-One', 'a'],
          ['x-one', 'b'],
          ['x-tab', 'a\tb'],
          ['x-empty', ''],
          ['cache-control', 'no-store'],
        ],
      })
      assert.equal(headerOf(response, 'x-one'), 'b')
      assert.equal(headerOf(response, 'x-tab'), 'a\tb')
      assert.equal(headerOf(response, 'x-empty'), '')
      assert.equal(headerOf(response, 'cache-control'), 'no-store')
    })

    it('tells a content type apart from headers whose names end like it', async () => {
      const plain = await say({ result: 1, headers: [['x-content-type', 'text/html']] })
      assert.equal(headerOf(plain, 'x-content-type'), 'text/html')
      assert.equal(headerOf(plain, 'content-type'), 'application/json; charset=utf-8')
      assert.equal(headerOf(plain, 'content-security-policy'), undefined)
      const typed = await say({
        result: 1,
        headers: [
          ['x-content-type', 'a'],
          ['content-type', 'text/plain'],
          ['content-type', 'text/csv'],
        ],
      })
      assert.equal(headerOf(typed, 'x-content-type'), 'a')
      assert.equal(headerOf(typed, 'content-type'), 'text/csv')
    })

    it('adds a content security policy to pages only', async () => {
      const page = await say({ result: 1, headers: [['content-type', 'text/html; charset=utf-8']] })
      assert.match(headerOf(page, 'content-security-policy')!, /default-src 'self'/)
      assert.equal(headerOf(await say({ result: 1 }), 'content-security-policy'), undefined)
      const own = await say({
        result: 1,
        headers: [
          ['content-type', 'text/html'],
          ['content-security-policy', "default-src 'none'"],
        ],
      })
      assert.equal(headerOf(own, 'content-security-policy'), "default-src 'none'")
    })

    it('drops headers that belong to the listener', async () => {
      const response = await say({
        result: 'text',
        headers: [
          ['Content-Length', '1'],
          ['transfer-encoding', 'chunked'],
          ['connection', 'close'],
          ['date', 'never'],
          ['keep-alive', 'timeout=1'],
          ['upgrade', 'h2c'],
          ['trailer', 'x'],
          ['x-request-id', 'forged'],
          ['x-content-type-options', 'sniff'],
        ],
      })
      assert.equal(response.body.toString(), '"text"')
      assert.notEqual(headerOf(response, 'x-request-id'), 'forged')
      assert.match(headerOf(response, 'date')!, / GMT$/)
      for (const name of ['connection', 'upgrade', 'keep-alive', 'trailer']) {
        assert.equal(headerOf(response, name), undefined)
      }
    })

    it('lets nothing be injected through a header, a redirect or a cookie', async () => {
      const evil = [
        'a\r\nx-injected: 1',
        'a\nx-injected: 1',
        'a\rx-injected: 1',
        'a\r\n\r\nbody',
        'a\0b',
        'a\x7fb',
        'a\u0100',
      ]
      for (const value of evil) {
        assertFailure(await say({ result: 1, headers: [['x-a', value]] }), 500, INTERNAL)
        assertFailure(await say({ result: 1, headers: [['content-type', value]] }), 500, INTERNAL)
        assertFailure(await say({ result: 1, headers: [['connection', value]] }), 500, INTERNAL)
        assertFailure(await say({ redirect: [`/${value}`] }), 500, INTERNAL)
        assertFailure(await say({ result: 1, cookies: [['a', 'b', { path: value }]] }), 500, INTERNAL)
        assertFailure(await say({ result: 1, cookies: [['a', 'b', { domain: value }]] }), 500, INTERNAL)
        assertFailure(await say({ result: 1, cookies: [['a', 'b', { sameSite: value }]] }), 500, INTERNAL)
        assertFailure(await say({ result: 1, cookies: [[value, 'b']] }), 500, INTERNAL)
        // A cookie's value is encoded instead: it arrives whole, and in one line.
        const cookie = headerOf(await say({ result: 1, cookies: [['a', value]] }), 'set-cookie')!
        assert.equal(decodeURIComponent(/^a=([^;]*);/.exec(cookie)![1]!), value)
      }
      for (const name of ['', 'a b', 'a:', 'a\r\nb', 'é', '(']) {
        assertFailure(await say({ result: 1, headers: [[name, 'x']] }), 500, INTERNAL)
      }
      await assertAnswers(heddle.port)
    })

    it('sets cookies that are HttpOnly, Secure and SameSite=Lax unless told otherwise', async () => {
      const response = await say({
        result: 1,
        cookies: [
          ['a', '1'],
          [
            'b',
            'x y;z',
            { httpOnly: false, secure: false, sameSite: 'Strict', maxAgeSec: 60, path: '/p', domain: 'd.test' },
          ],
        ],
      })
      const [first, second] = response.headers.get('set-cookie')!.map((cookie) => cookie.split('; ').sort())
      assert.deepEqual(first, ['HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure', 'a=1'].sort())
      assert.deepEqual(second, ['Domain=d.test', 'Max-Age=60', 'Path=/p', 'SameSite=Strict', 'b=x%20y%3Bz'].sort())
    })

    it('redirects', async () => {
      const found = await say({ redirect: ['/elsewhere?a=b#c'] })
      assert.equal(found.status, 302)
      assert.equal(headerOf(found, 'location'), '/elsewhere?a=b#c')
      assert.equal(found.body.length, 0)
      assert.equal((await say({ redirect: ['https://x.test/', 308] })).status, 308)
    })

    it('sends bytes of any value with their type', async () => {
      const response = await get('/binary')
      assert.equal(headerOf(response, 'content-type'), 'application/octet-stream')
      assert.deepEqual(
        [...response.body],
        Array.from({ length: 256 }, (_, byte) => byte),
      )
    })

    it('is 500 when the handler throws; the log knows why, the client does not', async () => {
      for (const [path, secret] of [
        ['/throw', 'secret of a handler'],
        ['/throw-late', 'secret of an async handler'],
        ['/not-json', 'a bigint as big, which JSON cannot hold'],
      ]) {
        const requestId = `fault-${prefix.slice(1)}-${path!.slice(1)}`
        const response = await get(path!, { 'x-request-id': requestId })
        assertFailure(response, 500, INTERNAL)
        assert.equal(response.head.includes('secret'), false)
        const line = await until(
          () => heddle.logs.find((entry) => entry.request_id === requestId),
          `the log of ${path}`,
        )
        assert.match(line.msg, new RegExp(secret!))
        assert.match(line.identity, /^probe\.AnswerIn/)
        assert.match(String(line.stack), /routes\.ts|json-answer/)
      }
    })

    it('is 500 for whatever else a handler throws or returns that cannot be sent, and the thread lives on', async () => {
      const bytes = ['text', 'array', 'number', 'object', 'buffer', 'words', 'null'].map((kind) => `binary-${kind}`)
      // More that cannot be read: test/rooms/hostile/odd-values.test.ts.
      for (const kind of ['throw-hostile', 'circular', 'function', 'symbol', ...bytes]) {
        const response = await get(`/odd/${kind}`)
        assert.equal(response.status, 500, kind)
        assertFailure(response, 500, INTERNAL)
      }
      assert.equal(
        heddle.logs.some(({ msg }) => /^Lane \d+ died/.test(msg)),
        false,
      )
    })

    it('is what can be made of a thenable, of empty and of shared bytes', async () => {
      assert.deepEqual(jsonOf(await get('/odd/thenable')), { success: true })
      assert.equal((await get('/odd/binary-empty')).body.length, 0)
      assert.deepEqual([...(await get('/odd/binary-shared')).body], [0, 0, 0])
    })

    it('may be an error of the catalogue that a client is told', async () => {
      assertFailure(await get('/odd/throw-not-found'), 404, 'No such thing')
    })

    it('has any size', async () => {
      for (const bytes of [1, 65_535, 65_536, 65_537, 1_048_577, 5_000_000]) {
        const response = await get(`/large/${bytes}`)
        assert.equal(response.body.length, bytes)
        assert.ok(response.body.equals(Buffer.alloc(bytes, 'heddle')), `${bytes} bytes came changed`)
        const text = jsonOf(await get(`/large-json/${bytes}`)).text
        assert.equal(text, 'é'.repeat(bytes))
        const head = await ask(heddle.port, 'HEAD', `${prefix}/large/${bytes}`)
        assert.equal(headerOf(head, 'content-length'), String(bytes))
      }
    })

    it('asks for a token where there is none, and refuses a bad one', async () => {
      for (const headers of [{}, { authorization: '' }, { authorization: 'Basic good' }, { authorization: 'Bearer' }]) {
        const response = await get('/private', headers as Record<string, string>)
        assertFailure(response, 401, 'Missing authorization token')
        assert.equal(headerOf(response, 'www-authenticate'), 'Bearer')
      }
      assertFailure(await get('/private', { authorization: 'good' }), 401, 'Missing authorization token')
      for (const token of ['bad', 'GOOD', 'false', 'good,']) {
        const response = await get('/private', { authorization: `Bearer ${token}` })
        assertFailure(response, 401, 'Invalid or expired token')
      }
      const good = await get('/private', { Authorization: 'bearer good' })
      assert.deepEqual(jsonOf(good).data.data, { _auth: { sub: 'user-1' } })
      assertFailure(await get('/private', { authorization: 'Bearer broken' }), 500, INTERNAL)
    })

    it('asks for the token before it looks at the input', async () => {
      const headers = { 'content-type': 'application/json' }
      const response = await ask(heddle.port, 'POST', `${prefix}/private`, headers, '{')
      assertFailure(response, 401, 'Missing authorization token')
    })

    it('is 504 when the time is up: the signal is aborted, the late result goes nowhere', async () => {
      const key = `overtime${prefix.slice(1)}`
      const connection = await RawConnection.open(heddle.port)
      const startedMs = performance.now()
      await connection.send(requestText('GET', `${prefix}/overtime/${key}`))
      assertFailure(await connection.response(), 504, 'The handler did not answer in time')
      const tookMs = performance.now() - startedMs
      assert.ok(tookMs >= 240 && tookMs < 2_000, `${tookMs} ms`)
      await until(
        async () => jsonOf(await get(`/state/${key}:aborted`)).data === 1,
        'the signal is aborted, the handler goes on',
      )
      // The next answer on the connection belongs to the next request.
      await connection.send(requestText('GET', `${prefix}/echo/next`))
      assert.equal(jsonOf((await connection.response())!).data.data.id, 'next')
      assert.equal(connection.rest.length, 0)
      connection.drop()
    })

    it('takes over a request id of at most 128 visible ASCII characters, and makes one otherwise', async () => {
      for (const id of ['a', '!~"<>{}', 'x'.repeat(128)]) {
        const response = await get('/echo', { 'x-request-id': id })
        assert.equal(headerOf(response, 'x-request-id'), id)
        assert.equal(jsonOf(response).data.requestId, id)
      }
      const made = new Set<string>()
      for (const id of ['', 'x'.repeat(129), 'a b', 'a\tb', 'é', 'a\xffb', '\xc2\xa0']) {
        const response = await get('/echo', { 'x-request-id': id })
        const own = headerOf(response, 'x-request-id')!
        assert.match(own, /^req_[\w-]+$/)
        assert.equal(jsonOf(response).data.requestId, own)
        made.add(own)
      }
      assert.equal(made.size, 7)
      assert.equal(
        headerOf(await ask(heddle.port, 'GET', '/nowhere', { 'x-request-id': 'mine' }), 'x-request-id'),
        'mine',
      )
    })
  })
}
