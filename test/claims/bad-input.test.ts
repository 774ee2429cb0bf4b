import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { itHolds } from '../support/listener.ts'
import { ask, assertFailure, jsonOf, type RawResponse } from '../support/raw-client.ts'
import { shareHeddle } from '../support/shared-process.ts'

const heddle = shareHeddle()
const JSON_BODY = { 'content-type': 'application/json' }
const FORM_BODY = { 'content-type': 'application/x-www-form-urlencoded' }
const MULTIPART_BODY = { 'content-type': 'multipart/form-data; boundary=cut' }

/** Parts of a multipart body: the head lines' rest and the content. */
function multipart(...parts: [disposition: string, content: string][]): Buffer {
  const text = parts.map(
    ([disposition, content]) => `--cut\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`,
  )
  return Buffer.from(`${text.join('')}--cut--\r\n`, 'latin1')
}

function nested(levels: number): string {
  return `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`
}

for (const [thread, prefix] of [
  ['lane', '/w'],
  ['primary', '/p'],
] as const) {
  describe(`input of a handler in the ${thread}`, () => {
    const send = (target: string, headers: Record<string, string>, body?: string | Uint8Array): Promise<RawResponse> =>
      ask(heddle.port, 'POST', prefix + target, headers, body)
    const echoed = async (target: string, headers: Record<string, string>, body?: string | Uint8Array) => {
      const response = await send(target, headers, body)
      assert.equal(response.status, 200, response.body.toString())
      return jsonOf(response).data
    }

    it('merges query, body and path parameters, the later one winning', async () => {
      const { data } = await echoed('/echo/path?id=query&a=query&b=query', JSON_BODY, '{"id":"body","a":"body","c":1}')
      assert.deepEqual(data, { id: 'path', a: 'body', b: 'query', c: 1 })
      const form = await echoed('/echo/path?id=query&a=query&b=query', FORM_BODY, 'id=body&a=body&c=1')
      assert.deepEqual(form.data, { id: 'path', a: 'body', b: 'query', c: '1' })
      const upload = await echoed(
        '/echo/path?id=query&a=query&b=query',
        MULTIPART_BODY,
        multipart(['name="id"', 'body'], ['name="a"', 'body']),
      )
      assert.deepEqual(upload.data, { id: 'path', a: 'body', b: 'query', _files: [] })
    })

    it('checks the fields of an upload by the body schema, and leaves the files to the handler', async () => {
      const { data } = await echoed(
        '/checked/7',
        MULTIPART_BODY,
        multipart(['name="name"', 'Ada'], ['name="picture"; filename="a.txt"', 'pixels']),
      )
      assert.equal(data.id, 7)
      assert.equal(data.name, 'Ada')
      assert.equal(data._files.length, 1)
      assert.equal(data._files[0].filename, 'a.txt')
    })

    it('lets nobody forge a key that starts with _auth or _files', async () => {
      const query = '_auth=1&_authority=1&%5Fauth=1&_files=1&_files%5B0%5D=1&ok=1'
      assert.deepEqual((await echoed(`/echo?${query}`, {})).data, { ok: '1' })
      const json = '{"_auth":{"sub":"root"},"\\u005fauth":1,"_auth2":1,"_files":[],"_filesystem":1,"ok":1}'
      assert.deepEqual((await echoed('/echo', JSON_BODY, json)).data, { ok: 1 })
      assert.deepEqual((await echoed('/echo', FORM_BODY, query)).data, { ok: '1' })
      const upload = await echoed(
        '/echo',
        MULTIPART_BODY,
        multipart(['name="_auth"', 'x'], ['name="_files"', 'x'], ['name="ok"', '1']),
      )
      assert.deepEqual(upload.data, { ok: '1', _files: [] })
      assert.deepEqual((await echoed('/echo/_auth', {})).data, { id: '_auth' })
    })

    it('puts only the validator’s claims into _auth', async () => {
      const authorization = { authorization: 'Bearer good' }
      const json = '{"_auth":{"sub":"root"},"\\u005fauth":{"sub":"root"}}'
      const { data } = await echoed('/private?_auth=root', { ...JSON_BODY, ...authorization }, json)
      assert.deepEqual(data, { _auth: { sub: 'user-1' } })
      const form = await echoed('/private', { ...FORM_BODY, ...authorization }, '_auth=root&_auth%5Bsub%5D=root')
      assert.deepEqual(form.data, { _auth: { sub: 'user-1' } })
    })

    it('refuses keys that reach a prototype, nested and escaped ones too', async () => {
      for (const key of ['__proto__', 'constructor', 'prototype']) {
        const escaped = [...key].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
        for (const body of [
          `{"${key}":{"polluted":1}}`,
          `{"${escaped}":{"polluted":1}}`,
          `{"a":[{"b":{"${key}":1}}]}`,
          `{"a":[{"b":{"${escaped}":1}}]}`,
          `[{"${key}":1}]`,
        ]) {
          assertFailure(await send('/echo', JSON_BODY, body), 400, `The body has the forbidden key ${key}`)
        }
        assertFailure(await send(`/echo?${key}=1`, {}), 400, `The query has the forbidden key ${key}`)
        assertFailure(await send('/echo', FORM_BODY, `${key}=1`), 400, `The form body has the forbidden key ${key}`)
        assertFailure(
          await send('/echo', MULTIPART_BODY, multipart([`name="${key}"`, '1'])),
          400,
          `The multipart body has the forbidden key ${key}`,
        )
      }
      assert.equal((await echoed('/echo', {})).polluted, null)
    })

    it('takes names of inherited properties for plain fields', async () => {
      const body = multipart(['name="toString"', 'x'], ['name="hasOwnProperty"', 'y'])
      assert.deepEqual((await echoed('/echo', MULTIPART_BODY, body)).data, {
        toString: 'x',
        hasOwnProperty: 'y',
        _files: [],
      })
      const fields = 'toString=x&valueOf=y'
      assert.deepEqual((await echoed(`/echo?${fields}`, {})).data, { toString: 'x', valueOf: 'y' })
      assert.deepEqual((await echoed('/echo', FORM_BODY, fields)).data, { toString: 'x', valueOf: 'y' })
    })

    it('gives a JSON body that is no object as context.body', async () => {
      for (const body of ['[1,{"a":2}]', '"text"', '17', 'true', 'null']) {
        const { data, body: given, hasBody } = await echoed('/echo', JSON_BODY, body)
        assert.deepEqual(given, { value: JSON.parse(body) })
        assert.equal(hasBody, true)
        assert.deepEqual(data, {})
      }
    })

    it('reads JSON by its media type, whatever its case, parameters and suffix', async () => {
      for (const type of [
        'application/json; charset=utf-8',
        'APPLICATION/JSON;charset="UTF-8"',
        'application/vnd.api+json',
      ]) {
        assert.deepEqual((await echoed('/echo', { 'content-type': type }, '{"a":"é"}')).data, { a: 'é' })
      }
      const latin = { 'content-type': 'application/json; charset=iso-8859-1' }
      assertFailure(await send('/echo', latin, '{}'), 415, 'Unsupported charset iso-8859-1; send UTF-8')
    })

    it('answers 400 to malformed JSON and never shows the body', async () => {
      for (const body of [
        '{',
        '{"a":}',
        '{"a":1,}',
        "{'a':1}",
        'undefined',
        'NaN',
        '{"a":1}x',
        '\ufeff{}',
        '"\n"',
        '01',
      ]) {
        assertFailure(await send('/echo', JSON_BODY, body), 400, 'The body is not valid JSON')
      }
    })

    it('answers 400 to JSON that is not UTF-8', async () => {
      for (const bytes of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
        const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')])
        assertFailure(await send('/echo', JSON_BODY, body), 400, 'The body is not valid UTF-8')
      }
    })

    it('takes 64 levels of nesting and answers 400 to more', async () => {
      assert.deepEqual((await echoed('/echo', JSON_BODY, nested(64))).data, JSON.parse(nested(64)))
      for (const body of [nested(65), nested(200), `${'['.repeat(200)}${']'.repeat(200)}`]) {
        assertFailure(await send('/echo', JSON_BODY, body), 400, 'The body is nested deeper than 64 levels')
      }
      const deepest = '['.repeat(100_000) + ']'.repeat(100_000)
      assertFailure(await send('/echo', JSON_BODY, deepest), 400, 'The body is nested deeper than 64 levels')
    })

    it('reads forms: blanks, encoded characters, repeated and empty fields', async () => {
      const { data, hasBody } = await echoed('/echo', FORM_BODY, 'a=1+2%2B3&b=%C3%A9&c=1&c=2&c=3&d&e=&&f=x=y')
      assert.deepEqual(data, { a: '1 2+3', b: 'é', c: ['1', '2', '3'], d: '', e: '', f: 'x=y' })
      assert.equal(hasBody, false)
      assertFailure(await send('/echo', FORM_BODY, 'a=%zz'), 400, 'The form body has invalid percent-encoding')
      assertFailure(await send('/echo', FORM_BODY, 'a=%ff'), 400, 'The form body has invalid percent-encoding')
      const many = 'a=1&'.repeat(1001)
      assertFailure(await send('/echo', FORM_BODY, many), 400, 'The form body has more than 1000 fields')
    })

    it('reads multipart fields and files, every byte of them', async () => {
      const bytes = String.fromCharCode(...Array.from({ length: 256 }, (_, byte) => byte))
      const { data } = await echoed(
        '/echo',
        MULTIPART_BODY,
        multipart(
          ['name="title"', 'A title'],
          ['name="tag"', '1'],
          ['name="tag"', '2'],
          ['name="photo"; filename="a.png"\r\ncontent-type: image/png', bytes],
          ['name="photo"; filename="../../etc/passwd"', ''],
        ),
      )
      assert.equal(data.title, 'A title')
      assert.deepEqual(data.tag, ['1', '2'])
      assert.equal(data._files.length, 2)
      const [photo, second] = data._files
      assert.deepEqual(photo, {
        field: 'photo',
        filename: 'a.png',
        type: 'image/png',
        base64: Buffer.from(bytes, 'latin1').toString('base64'),
      })
      assert.equal(second.base64, '')
      assert.equal(second.filename, 'passwd')
    })

    it('answers 400 to a multipart body that is cut off or has no boundary', async () => {
      const whole = multipart(['name="a"', 'text'])
      assertFailure(await send('/echo', MULTIPART_BODY, whole.subarray(0, 60)), 400, 'The multipart body is malformed')
      assertFailure(await send('/echo', MULTIPART_BODY, 'no parts at all'), 400, /^The multipart body /)
      const noBoundary = { 'content-type': 'multipart/form-data' }
      assertFailure(await send('/echo', noBoundary, whole), 400, 'The multipart body has no valid boundary')
    })

    it('answers 400 to a multipart part without a name, and the thread lives on', async () => {
      for (const disposition of ['x="a"', 'filename="a.txt"']) {
        const body = multipart([disposition, 'text'], ['name="a"', 'text'])
        assertFailure(await send('/echo', MULTIPART_BODY, body), 400, 'The multipart body has a part without a name')
        assertFailure(await send('/echo', MULTIPART_BODY, body.subarray(0, 60)), 400, /^The multipart body /)
      }
      assert.equal((await send('/echo', {})).status, 200)
    })

    it('gives every other body as its bytes', async () => {
      const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte)
      const base64 = Buffer.from(bytes).toString('base64')
      const types: Record<string, string>[] = [
        { 'content-type': 'application/octet-stream' },
        { 'content-type': 'text/plain' },
        {},
      ]
      for (const headers of types) {
        const { body, data } = await echoed('/echo', headers, bytes)
        assert.deepEqual(body, { base64 })
        assert.deepEqual(data, {})
      }
    })

    it('takes an empty body for none', async () => {
      for (const headers of [FORM_BODY, {}]) {
        const { data, hasBody } = await echoed('/echo', { ...headers, 'content-length': '0' })
        assert.deepEqual(data, {})
        assert.equal(hasBody, false)
      }
    })

    it('answers 400 to an empty body that says that it is JSON', async () => {
      for (const headers of [JSON_BODY, { 'content-type': 'application/merge-patch+json; charset=utf-8' }])
        assertFailure(await send('/echo', headers, ''), 400, /^The body is empty/)
    })

    it('answers 415 to a compressed body', async () => {
      const headers = { ...JSON_BODY, 'content-encoding': 'gzip' }
      assertFailure(await send('/echo', headers, 'x'), 415, 'Compressed request bodies are not supported')
    })

    it('gives validated and converted input to the handler', async () => {
      const { data } = await echoed('/checked/7?page=3', JSON_BODY, '{"name":"Ada","dropped":1}')
      assert.deepEqual(data, { id: 7, page: 3, name: 'Ada' })
      assert.equal((await echoed('/checked/7', JSON_BODY, '{"name":"Ada"}')).data.page, 1)
    })

    it('answers 422 with every path and message that did not fit', async () => {
      const response = await send('/checked/x?page=y', JSON_BODY, '{"name":"A","address":{"city":5}}')
      const { details } = jsonOf(response)
      assertFailure(response, 422, 'Validation failed', details)
      assert.deepEqual(details.map(({ path }: { path: string }) => path).sort(), ['address.city', 'id', 'name', 'page'])
      for (const detail of details) {
        assert.deepEqual(Object.keys(detail).sort(), ['message', 'path'])
        assert.equal(typeof detail.message, 'string')
      }
      for (const body of ['[]', 'null', '"x"']) {
        assert.equal((await send('/checked/1', JSON_BODY, body)).status, 422, body)
      }
      assert.equal((await send('/checked/1', {})).status, 422)
    })

    it('answers 415 where a schema wants fields and the type has none', async () => {
      assertFailure(
        await send('/checked/1', { 'content-type': 'text/plain' }, 'name=Ada'),
        415,
        'Unsupported media type text/plain; send application/json',
      )
      assertFailure(await send('/checked/1', {}, 'x'), 415, 'Unsupported media type (none); send application/json')
    })

    it('answers 400 to bad percent-encoding and to NUL in the path, 400 to bad percent-encoding in the query', async () => {
      for (const segment of ['%', '%f', '%zz', '%ff', '%c3', '%c0%af', '%ed%a0%80']) {
        assertFailure(await send(`/echo/${segment}`, {}), 400, 'The path has invalid percent-encoding')
        assertFailure(await send(`/echo?a=${segment}`, {}), 400, 'The query has invalid percent-encoding')
        assertFailure(await send(`/echo?${segment}=a`, {}), 400, 'The query has invalid percent-encoding')
      }
      assertFailure(await send('/echo/a%00b', {}), 400, 'The path has a NUL')
      const form = Buffer.from('a=\xff', 'latin1')
      assertFailure(await send('/echo', FORM_BODY, form), 400, 'The form body is not valid UTF-8')
    })

    itHolds(it, 'answers 400 to bytes beyond ASCII that are no UTF-8', async () => {
      assertFailure(await send('/echo/a\xff', {}), 400, 'The path is not valid UTF-8')
      assertFailure(await send('/echo?a=\xff', {}), 400, 'The query is not valid UTF-8')
    })

    itHolds(it, 'reads a path in UTF-8', async () => {
      assert.deepEqual((await echoed(`/echo/${Buffer.from('é').toString('latin1')}`, {})).data, { id: 'é' })
    })

    it('reads a header in UTF-8, and survives one that is none', async () => {
      const latin1 = Buffer.from('é').toString('latin1')
      assert.equal((await echoed('/echo', { 'x-note': `a${latin1}b` })).headers['x-note'], 'aéb')
      assert.equal((await echoed('/echo', { 'x-note': 'a\xffb', 'x-next': 'c' })).headers['x-next'], 'c')
    })

    it('joins repeated headers, and cookies by a semicolon', async () => {
      const head = 'x-many: 1\r\nX-Many: 2\r\ncookie: a=1\r\ncookie: b=2'
      const { headers } = await echoed('/echo', { 'x-first': `0\r\n${head}` })
      assert.equal(headers['x-many'], '1, 2')
      assert.equal(headers.cookie, 'a=1; b=2')
    })

    it('says who asks and what', async () => {
      const { method, path, route, ip } = await echoed('/echo/7?a=b', {})
      assert.deepEqual(
        { method, path, route, ip },
        {
          method: 'POST',
          path: `${prefix}/echo/7`,
          route: `${prefix}/echo/:id`,
          ip: '127.0.0.1',
        },
      )
    })
  })
}
