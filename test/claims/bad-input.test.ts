// What a client sends reaches a handler as its types say, or gets an answer that says what is wrong. More texts: test/unit/hostile, test/rooms/hostile.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { itHolds } from '../support/listener.ts'
import { ask, assertFailure, jsonOf, type RawResponse } from '../support/raw-client.ts'
import { shareHeddle } from '../support/shared-process.ts'

type Headers = Record<string, string>
type Request = [target: string, headers?: Headers, body?: string | Uint8Array]

const heddle = shareHeddle()
const JSON_BODY = { 'content-type': 'application/json' }
const FORM_TYPE = 'application/x-www-form-urlencoded'
const FORM_BODY = { 'content-type': FORM_TYPE }
const MULTIPART_BODY = { 'content-type': 'multipart/form-data; boundary=cut' }
const GOOD_TOKEN = { authorization: 'Bearer good' }

/** Parts of a multipart body: the head lines' rest and the content. */
function multipart(...parts: [disposition: string, content: string][]): Buffer {
  const text = parts.map(
    ([disposition, content]) => `--cut\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`,
  )
  return Buffer.from(`${text.join('')}--cut--\r\n`, 'latin1')
}

const nested = (levels: number): string => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

const THREE = '/echo/path?id=query&a=query&b=query'
const FORGED = '_auth=1&_authority=1&%5Fauth=1&_files=1&_files%5B0%5D=1&ok=1'
const INHERITED = 'toString=x&valueOf=y'
const EMPTY_JSON = 'The body is empty, which is no JSON: send {} or no content-type'
const CLAIMS = { _auth: { sub: 'user-1' } }

/** Requests, and what a handler gets as its `data`. */
const READ: Record<string, [target: string, headers: Headers, body: Request[2], data: object][]> = {
  'query, body and path parameters, the later one winning': [
    [THREE, JSON_BODY, '{"id":"body","a":"body","c":1}', { id: 'path', a: 'body', b: 'query', c: 1 }],
    [THREE, FORM_BODY, 'id=body&a=body&c=1', { id: 'path', a: 'body', b: 'query', c: '1' }],
    [
      THREE,
      MULTIPART_BODY,
      multipart(['name="id"', 'body'], ['name="a"', 'body']),
      { id: 'path', a: 'body', b: 'query', _files: [] },
    ],
  ],
  'no forged key that starts with _auth or _files': [
    [`/echo?${FORGED}`, {}, undefined, { ok: '1' }],
    [
      '/echo',
      JSON_BODY,
      '{"_auth":{"sub":"root"},"\\u005fauth":1,"_auth2":1,"_files":[],"_filesystem":1,"ok":1}',
      { ok: 1 },
    ],
    ['/echo', FORM_BODY, FORGED, { ok: '1' }],
    [
      '/echo',
      MULTIPART_BODY,
      multipart(['name="_auth"', 'x'], ['name="_files"', 'x'], ['name="ok"', '1']),
      { ok: '1', _files: [] },
    ],
    ['/echo/_auth', {}, undefined, { id: '_auth' }],
  ],
  'only the validator’s claims as _auth': [
    ['/private?_auth=root', { ...JSON_BODY, ...GOOD_TOKEN }, '{"_auth":{"sub":"root"},"\\u005fauth":1}', CLAIMS],
    ['/private', { ...FORM_BODY, ...GOOD_TOKEN }, '_auth=root&_auth%5Bsub%5D=root', CLAIMS],
  ],
  'names of inherited properties as plain fields': [
    [`/echo?${INHERITED}`, {}, undefined, { toString: 'x', valueOf: 'y' }],
    ['/echo', FORM_BODY, INHERITED, { toString: 'x', valueOf: 'y' }],
    ['/echo', MULTIPART_BODY, multipart(['name="toString"', 'x']), { toString: 'x', _files: [] }],
  ],
  'JSON by its media type, whatever its case, parameters and suffix': [
    ['/echo', { 'content-type': 'application/json; charset=utf-8' }, '{"a":"é"}', { a: 'é' }],
    ['/echo', { 'content-type': 'APPLICATION/JSON;charset="UTF-8"' }, '{"a":"é"}', { a: 'é' }],
    ['/echo', { 'content-type': 'application/vnd.api+json' }, '{"a":"é"}', { a: 'é' }],
  ],
  'JSON whose type has a parameter in quotes': [
    ['/echo', { 'content-type': 'application/json; profile="a;charset=latin1"' }, '{"a":1}', { a: 1 }],
  ],
  'a body in no coding, however that is said': ['identity', 'Identity', ''].map((coding) => [
    '/echo',
    { ...JSON_BODY, 'content-encoding': coding },
    '{"a":1}',
    { a: 1 },
  ]),
  'U+FFFD, which somebody has typed': [['/echo', FORM_BODY, 'a=\ufffd', { a: '\ufffd' }]],
  '64 levels of nesting': [['/echo', JSON_BODY, nested(64), JSON.parse(nested(64))]],
  'forms: blanks, encoded characters, repeated and empty fields': [
    [
      '/echo',
      FORM_BODY,
      'a=1+2%2B3&b=%C3%A9&c=1&c=2&c=3&d&e=&&f=x=y',
      { a: '1 2+3', b: 'é', c: ['1', '2', '3'], d: '', e: '', f: 'x=y' },
    ],
  ],
  'an empty body as none': [
    ['/echo', { ...FORM_BODY, 'content-length': '0' }, undefined, {}],
    ['/echo', { 'content-length': '0' }, undefined, {}],
  ],
  'what the schemas make of it': [
    ['/checked/7?page=3', JSON_BODY, '{"name":"Ada","dropped":1}', { id: 7, page: 3, name: 'Ada' }],
    ['/checked/7', JSON_BODY, '{"name":"Ada"}', { id: 7, page: 1, name: 'Ada' }],
    ['/checked/7', MULTIPART_BODY, multipart(['name="name"', 'Ada']), { id: 7, page: 1, name: 'Ada', _files: [] }],
  ],
}

const BAD_ENCODINGS = ['%', '%f', '%zz', '%ff', '%c3', '%c0%af', '%ed%a0%80']
const WHOLE = multipart(['name="a"', 'text'])

/** What a client is told of its request, and with which status. */
const REFUSED: [error: string, status: number, ...Request][] = [
  ['The body is not valid JSON', 400, '/echo', JSON_BODY, '{"a":1,}'],
  ['The body is not valid UTF-8', 400, '/echo', JSON_BODY, latin1('{"a":"\xff"}')],
  ['The body is nested deeper than 64 levels', 400, '/echo', JSON_BODY, nested(65)],
  ['The body is nested deeper than 64 levels', 400, '/echo', JSON_BODY, '['.repeat(100_000) + ']'.repeat(100_000)],
  ['The body has the forbidden key __proto__', 400, '/echo', JSON_BODY, '{"a":[{"\\u005f_proto__":{"polluted":1}}]}'],
  ['The body has the forbidden key constructor', 400, '/echo', JSON_BODY, '{"constructor":{"polluted":1}}'],
  [
    'The body has the number 12345678901234567890, which would lose digits: send it as text',
    400,
    '/echo',
    JSON_BODY,
    '{"id":12345678901234567890}',
  ],
  ['The body has more than 20000 keys', 413, '/echo', JSON_BODY, `{${'"a":{"b":1},'.repeat(10_000)}"c":1}`],
  ['Unsupported charset latin1; send UTF-8', 415, '/echo', { 'content-type': `${FORM_TYPE}; charset=latin1` }, 'a=1'],
  ['The multipart body is malformed: something stands behind a boundary', 400, '/echo', MULTIPART_BODY, '--cut x\r\n'],
  [EMPTY_JSON, 400, '/echo', JSON_BODY, ''],
  [EMPTY_JSON, 400, '/echo', { 'content-type': 'application/merge-patch+json; charset=utf-8' }, ''],
  [
    'Unsupported charset latin1; send UTF-8',
    415,
    '/echo',
    { 'content-type': 'application/json; charset=latin1' },
    '{}',
  ],
  ['Compressed request bodies are not supported', 415, '/echo', { ...JSON_BODY, 'content-encoding': 'gzip' }, 'x'],
  [
    'Unsupported media type text/plain; send application/json',
    415,
    '/checked/1',
    { 'content-type': 'text/plain' },
    'a',
  ],
  ['Unsupported media type (none); send application/json', 415, '/checked/1', {}, 'x'],
  ['The form body has invalid percent-encoding', 400, '/echo', FORM_BODY, 'a=%zz'],
  ['The form body is not valid UTF-8', 400, '/echo', FORM_BODY, latin1('a=\xff')],
  ['The form body has more than 1000 fields', 400, '/echo', FORM_BODY, 'a=1&'.repeat(1001)],
  ['The form body has the forbidden key prototype', 400, '/echo', FORM_BODY, 'prototype=1'],
  ['The multipart body is malformed', 400, '/echo', MULTIPART_BODY, WHOLE.subarray(0, 60)],
  ['The multipart body has no valid boundary', 400, '/echo', { 'content-type': 'multipart/form-data' }, WHOLE],
  ['The multipart body has a part without a name', 400, '/echo', MULTIPART_BODY, multipart(['x="a"', 'text'])],
  [
    'The multipart body has the forbidden key __proto__',
    400,
    '/echo',
    MULTIPART_BODY,
    multipart(['name="__proto__"', '1']),
  ],
  ['The query has the forbidden key __proto__', 400, '/echo?__proto__=1'],
  ['The path has a NUL', 400, '/echo/a%00b'],
  ...BAD_ENCODINGS.flatMap((segment): typeof REFUSED => [
    ['The path has invalid percent-encoding', 400, `/echo/${segment}`],
    ['The query has invalid percent-encoding', 400, `/echo?a=${segment}`],
    ['The query has invalid percent-encoding', 400, `/echo?${segment}=a`],
  ]),
]

for (const [thread, prefix] of [
  ['lane', '/w'],
  ['primary', '/p'],
] as const) {
  describe(`input of a handler in the ${thread}`, () => {
    const send = (...[target, headers, body]: Request): Promise<RawResponse> =>
      ask(heddle.port, 'POST', prefix + target, headers, body)
    const echoed = async (...request: Request) => {
      const response = await send(...request)
      assert.equal(response.status, 200, response.body.toString())
      return jsonOf(response).data
    }

    for (const [what, requests] of Object.entries(READ)) {
      it(`is ${what}`, async () => {
        for (const [target, headers, body, data] of requests)
          assert.deepEqual((await echoed(target, headers, body)).data, data)
      })
    }

    it('is refused with its status and what is wrong, and pollutes nothing', async () => {
      for (const [error, status, ...request] of REFUSED) assertFailure(await send(...request), status, error)
      assert.equal((await echoed('/echo')).polluted, null)
    })

    it('is context.body when JSON is no object, and else the bytes', async () => {
      for (const text of ['[1,{"a":2}]', '"text"', '17', 'true', 'null']) {
        const { data, body, hasBody } = await echoed('/echo', JSON_BODY, text)
        assert.deepEqual([data, body, hasBody], [{}, { value: JSON.parse(text) }, true])
      }
      const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte)
      const types: Headers[] = [{ 'content-type': 'application/octet-stream' }, { 'content-type': 'text/plain' }, {}]
      for (const headers of types) {
        const { data, body } = await echoed('/echo', headers, bytes)
        assert.deepEqual([data, body], [{}, { base64: Buffer.from(bytes).toString('base64') }])
      }
      assert.equal((await echoed('/echo', FORM_BODY, 'a=1')).hasBody, false)
    })

    it('is a form’s files, every byte of them, which no schema sees', async () => {
      const bytes = String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte))
      const photo = 'name="photo"; filename="../a.png"\r\ncontent-type: image/png'
      const { data } = await echoed('/checked/7', MULTIPART_BODY, multipart(['name="name"', 'Ada'], [photo, bytes]))
      const base64 = latin1(bytes).toString('base64')
      const files = [{ field: 'photo', filename: 'a.png', type: 'image/png', base64 }]
      assert.deepEqual(data, { id: 7, page: 1, name: 'Ada', _files: files })
    })

    it('is refused with 422, with every path and message that did not fit', async () => {
      const response = await send('/checked/x?page=y', JSON_BODY, '{"name":"A","address":{"city":5}}')
      const { details } = jsonOf(response)
      assertFailure(response, 422, 'Validation failed', details)
      assert.deepEqual(details.map(({ path }: { path: string }) => path).sort(), ['address.city', 'id', 'name', 'page'])
      for (const detail of details) {
        assert.deepEqual(Object.keys(detail).sort(), ['message', 'path'])
        assert.equal(typeof detail.message, 'string')
      }
      for (const body of ['[]', 'null', '"x"'])
        assert.equal((await send('/checked/1', JSON_BODY, body)).status, 422, body)
      assert.equal((await send('/checked/1')).status, 422)
    })

    itHolds(it, 'answers 400 to bytes beyond ASCII that are no UTF-8', async () => {
      assertFailure(await send('/echo/a\xff'), 400, 'The path is not valid UTF-8')
      assertFailure(await send('/echo?a=\xff'), 400, 'The query is not valid UTF-8')
    })

    itHolds(it, 'reads a path in UTF-8', async () => {
      assert.deepEqual((await echoed(`/echo/${Buffer.from('é').toString('latin1')}`)).data, { id: 'é' })
    })

    it('has headers in UTF-8, repeated ones joined, cookies by a semicolon', async () => {
      const note = `a${Buffer.from('é').toString('latin1')}b`
      const lines = `0\r\nx-many: 1\r\nX-Many: 2\r\ncookie: a=1\r\ncookie: b=2\r\nx-note: ${note}`
      const { headers } = await echoed('/echo', { 'x-first': lines })
      assert.deepEqual([headers['x-many'], headers.cookie, headers['x-note']], ['1, 2', 'a=1; b=2', 'aéb'])
      assert.equal((await echoed('/echo', { 'x-note': 'a\xffb', 'x-next': 'c' })).headers['x-next'], 'c')
    })

    it('says who asks and what', async () => {
      const { method, path, route, ip } = await echoed('/echo/7?a=b')
      assert.deepEqual([method, path, route, ip], ['POST', `${prefix}/echo/7`, `${prefix}/echo/:id`, '127.0.0.1'])
    })
  })
}
