import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { shareExchange } from '../../support/exchange-service.ts'
import { ask } from '../../support/raw-client.ts'

const JSON_TYPE = 'application/json'
const hex = (body: string | Uint8Array): string => Buffer.from(body as string).toString('hex')

describe('the bytes of a body', () => {
  const service = shareExchange()
  const post = async (path: string, type: string, body: string | Uint8Array, more: Record<string, string> = {}) => {
    const answer = await ask(service().port, 'POST', path, { 'content-type': type, ...more }, body)
    return { status: answer.status, got: JSON.parse(answer.body.toString()) }
  }

  it('are as they came beside what was parsed of them', async () => {
    const body = '{ "b": 1.0,\n\t"a":"\\u00e9é", "_auth": {} }'
    const { got } = await post('/lane/parsed', JSON_TYPE, body)
    assert.deepEqual(got, { data: { b: 1, a: 'éé' }, raw: hex(body), isBuffer: true })
    const form = await post('/lane/parsed', 'application/x-www-form-urlencoded', 'a=%41+b')
    assert.deepEqual(form.got, { data: { a: 'A b' }, raw: hex('a=%41+b'), isBuffer: true })
  })

  it('are empty without a body', async () => {
    const { body } = await ask(service().port, 'GET', '/lane/parsed?a=1')
    assert.deepEqual(JSON.parse(body.toString()), { data: { a: '1' }, raw: '', isBuffer: true })
  })

  it('are all that a route with rawBody gets, whatever they are', async () => {
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const cases: [type: string, body: string | Uint8Array, more?: Record<string, string>][] = [
      [JSON_TYPE, '{"a":1}'],
      [JSON_TYPE, '{"a":'],
      [JSON_TYPE, ''],
      [`${JSON_TYPE}; charset=latin1`, everyByte],
      [JSON_TYPE, gzipSync('{"a":1}'), { 'content-encoding': 'gzip' }],
      ['application/x-www-form-urlencoded', 'a=%zz'],
      ['multipart/form-data', 'no boundary'],
      ['text/xml', '<a/>'],
      // Larger than what a frame of the ring holds.
      ['application/octet-stream', Buffer.alloc(300_000, everyByte)],
    ]
    for (const [type, body, more] of cases) {
      const { status, got } = await post('/lane/raw?q=1', type, body, more)
      assert.equal(status, 200, type)
      assert.deepEqual(got, { data: { q: '1' }, raw: hex(body), isBuffer: true }, type)
    }
  })

  it('leave query and path to their schemas', async () => {
    const { got } = await post('/lane/raw/7?count=3', JSON_TYPE, '{"count":9,"id":1}')
    assert.deepEqual(got.data, { count: 3, id: '7' })
    assert.equal((await post('/lane/raw/7?count=x', JSON_TYPE, '')).status, 422)
  })
})
