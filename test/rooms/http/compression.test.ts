import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { shareExchange } from '../../support/exchange-service.ts'
import { ask, headerOf } from '../../support/raw-client.ts'

describe('HTTP_COMPRESSION', () => {
  const service = shareExchange()
  const get = (path: string, accepted: string, more: Record<string, string> = {}, method = 'GET') =>
    ask(service().port, method, path, { 'accept-encoding': accepted, ...more })

  it('sends large JSON and text as the client takes it', async () => {
    const text = JSON.stringify('ä'.repeat(2000))
    const br = await get('/lane/large?chars=2000', 'gzip, br')
    assert.deepEqual([headerOf(br, 'content-encoding'), headerOf(br, 'vary')], ['br', 'accept-encoding'])
    assert.equal(headerOf(br, 'content-type'), 'application/json; charset=utf-8')
    assert.equal(brotliDecompressSync(br.body).toString(), text)
    const gz = await get('/lane/large?chars=2000', 'gzip, br;q=0')
    assert.equal(headerOf(gz, 'content-encoding'), 'gzip')
    assert.equal(gunzipSync(gz.body).toString(), text)
    assert.ok(gz.body.byteLength < 200, `${gz.body.byteLength} bytes`)
    const plain = await get('/lane/large?chars=2000', 'identity')
    assert.deepEqual([headerOf(plain, 'content-encoding'), headerOf(plain, 'vary')], [undefined, 'accept-encoding'])
    assert.equal(plain.body.toString(), text)
    const csv = await get('/lane/large-later', 'br')
    assert.equal(JSON.parse(brotliDecompressSync(csv.body).toString()), 'a,b\n'.repeat(1000))
    assert.deepEqual([headerOf(csv, 'content-type'), headerOf(csv, 'etag')], ['text/csv', 'W/"v1"'])
  })

  it('leaves HEAD and 304 without a body', async () => {
    const head = await get('/lane/large?chars=2000', 'br', {}, 'HEAD')
    assert.deepEqual([head.status, head.body.byteLength], [200, 0])
    const tag = headerOf(head, 'etag')!
    assert.equal((await get('/lane/large?chars=2000', 'br', { 'if-none-match': tag })).status, 304)
  })

  it('sends small answers, bytes, what must not be changed, and those of the primary as they are', async () => {
    for (const path of [
      '/lane/large?chars=100',
      '/lane/large-bytes',
      '/lane/large-secret',
      '/primary/large?chars=2000',
    ]) {
      const answer = await get(path, 'gzip, br')
      assert.deepEqual([answer.status, headerOf(answer, 'content-encoding')], [200, undefined], path)
    }
  })
})
