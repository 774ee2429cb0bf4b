import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { KINDS, startKinds, statusOf } from '../rooms/access/kinds.ts'
import { ask, assertFailure } from '../support/raw-client.ts'
import { shareService } from '../support/shared-service.ts'

const LISTED = 'https://app.example'
/** What a page of another origin may not do: its reads are stopped by the browser, these are not. */
const GUARDED = new Set(['a stream', 'a WebSocket', 'an unsafe method', 'an unsafe method of the system'])
/** What browsers send for a page of another origin. */
const FOREIGN: readonly Record<string, string>[] = [
  { origin: 'https://evil.example' },
  { origin: 'null' },
  // The scheme may be a proxy's, the port may not.
  { origin: 'http://localhost:1' },
  { origin: 'https://localhost.evil' },
  { 'sec-fetch-site': 'cross-site' },
  { origin: 'http://localhost:3000', 'sec-fetch-site': 'same-site' },
]

describe('a page of another origin', { concurrency: true }, () => {
  const service = shareService((owner) => startKinds(owner, { env: { HTTP_CORS_ORIGINS: LISTED } }))

  for (const [kind, method, path] of KINDS) {
    it(`${GUARDED.has(kind) || method === 'PATCH' ? 'is refused' : 'may send'} ${kind}`, async () => {
      const own = await statusOf(service().port, method, path)
      const wanted = GUARDED.has(kind) || method === 'PATCH' ? 403 : own
      for (const headers of FOREIGN) {
        assert.equal(await statusOf(service().port, method, path, headers), wanted, JSON.stringify(headers))
      }
    })

    it(`does not disturb others: ${kind} is served without these headers, for the own page, and for a listed origin`, async () => {
      const { port } = service()
      const own = await statusOf(port, method, path)
      assert.notEqual(own, 403)
      for (const headers of [
        { origin: 'http://localhost', 'sec-fetch-site': 'same-origin' },
        { origin: 'https://localhost' },
        { 'sec-fetch-site': 'none' },
        { origin: LISTED, 'sec-fetch-site': 'cross-site' },
      ] as Record<string, string>[]) {
        assert.equal(await statusOf(port, method, path, headers), own, JSON.stringify(headers))
      }
    })
  }

  it('that posts a form is told so in the envelope, and nothing has run', async () => {
    const headers = { origin: 'https://evil.example', 'content-type': 'application/x-www-form-urlencoded' }
    const response = await ask(service().port, 'POST', '/w/count/forged', headers, 'a=1')
    assertFailure(response, 403, 'Pages of other origins may not do this, unless HTTP_CORS_ORIGINS names them')
    const counted = await ask(service().port, 'POST', '/w/count/forged', {}, '')
    assert.equal(JSON.parse(counted.body.toString()).data, 1)
  })
})

describe('HTTP_CORS_ORIGINS=*', () => {
  it('lets pages of every origin do everything', async (t) => {
    const { port } = await startKinds(t, { env: { HTTP_CORS_ORIGINS: '*' } })
    for (const [kind, method, path] of KINDS)
      for (const headers of FOREIGN) assert.notEqual(await statusOf(port, method, path, headers), 403, kind)
  })
})
