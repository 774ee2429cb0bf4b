import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { shareExchange } from '../../support/exchange-service.ts'
import { ask, headerOf } from '../../support/raw-client.ts'

describe('routes with etag', () => {
  const service = shareExchange()
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    ask(service().port, method, `/lane${path}`, headers)

  it('answer 304 to who has the bytes, and send them to others', async () => {
    for (const path of ['/tagged', '/tagged-later']) {
      const first = await get(`${path}/a`)
      const tag = headerOf(first, 'etag')!
      assert.match(tag, /^W\/"[\w-]{27}"$/)
      for (const known of [tag, tag.slice(2), `"x", ${tag}`, '*']) {
        const again = await get(`${path}/a`, { 'if-none-match': known })
        assert.deepEqual([again.status, again.body.byteLength, headerOf(again, 'etag')], [304, 0, tag], known)
        assert.equal(headerOf(again, 'cache-control'), headerOf(first, 'cache-control'))
        assert.equal(headerOf(again, 'content-type'), undefined)
      }
      const other = await get(`${path}/b`, { 'if-none-match': tag })
      assert.equal(other.status, 200)
      assert.notEqual(headerOf(other, 'etag'), tag)
      assert.equal((await get(`${path}/a`, { 'if-none-match': tag }, 'HEAD')).status, 304)
      assert.equal(headerOf(await get(`${path}/a`, {}, 'HEAD'), 'etag'), tag)
    }
  })

  it('keep the tag of the handler', async () => {
    assert.equal(headerOf(await get('/own-tag'), 'etag'), '"v7"')
    assert.equal((await get('/own-tag', { 'if-none-match': '"v7"' })).status, 304)
    assert.equal((await get('/own-tag', { 'if-none-match': '"v6"' })).body.toString(), '"seven"')
  })

  it('answer 412 to who wants them as they were', async () => {
    for (const [match, status] of [
      ['"v7"', 200],
      ['*', 200],
      ['"v6"', 412],
      ['W/"v7"', 412],
    ] as const)
      assert.equal((await get('/own-tag', { 'if-match': match })).status, status, match)
    const weak = headerOf(await get('/tagged/a'), 'etag')!
    assert.equal((await get('/tagged/a', { 'if-match': weak })).status, 412)
  })

  it('give none to failures, streams and other routes', async () => {
    const failure = await get('/tagged-failure', { 'if-none-match': '*' })
    assert.deepEqual([failure.status, headerOf(failure, 'etag')], [400, undefined])
    const stream = await service().fetch('/lane/tagged-stream', { headers: { 'if-none-match': '*' } })
    assert.deepEqual([stream.status, stream.headers.get('etag'), await stream.text()], [200, null, 'piece'])
    const plain = await get('/untagged', { 'if-none-match': '*' })
    assert.deepEqual([plain.status, headerOf(plain, 'etag')], [200, undefined])
  })
})
