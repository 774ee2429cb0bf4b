import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { ask, headerOf, type RawResponse } from '../../support/raw-client.ts'
import { SERVING } from '../../support/shared-process.ts'

const LISTED = 'https://app.test'
const PREFLIGHT = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type, x-mine' }

function corsHeaders({ headers }: RawResponse): string[] {
  return [...headers.keys()].filter((name) => name.startsWith('access-control-'))
}

async function withOrigins(t: Parameters<typeof startHeddle>[0], origins?: string): Promise<Heddle> {
  return startHeddle(t, {
    domains: [SERVING],
    lanes: 1,
    env: origins === undefined ? {} : { HTTP_CORS_ORIGINS: origins },
  })
}

describe('cross-origin requests', { concurrency: true }, () => {
  it('get no permission when no origin is listed', async (t) => {
    const { port } = await withOrigins(t)
    for (const origin of [LISTED, 'null', '*']) {
      assert.deepEqual(corsHeaders(await ask(port, 'GET', '/w/echo', { origin })), [])
      const preflight = await ask(port, 'OPTIONS', '/w/echo', { origin, ...PREFLIGHT })
      assert.equal(preflight.status, 204)
      assert.deepEqual(corsHeaders(preflight), [])
    }
  })

  it('get permission for the listed origins, exactly, and for no other', async (t) => {
    const { port } = await withOrigins(t, `${LISTED},http://localhost:5173`)
    for (const prefix of ['/w', '/p']) {
      for (const origin of [LISTED, 'http://localhost:5173']) {
        const response = await ask(port, 'GET', `${prefix}/echo`, { origin })
        assert.equal(headerOf(response, 'access-control-allow-origin'), origin)
        assert.match(headerOf(response, 'vary') ?? '', /\borigin\b/i)
        assert.match(headerOf(response, 'access-control-expose-headers')!, /x-request-id/)
        assert.equal(headerOf(response, 'access-control-allow-credentials'), undefined)
        const preflight = await ask(port, 'OPTIONS', `${prefix}/echo`, { origin, ...PREFLIGHT })
        assert.equal(preflight.status, 204)
        assert.equal(headerOf(preflight, 'access-control-allow-origin'), origin)
        assert.match(headerOf(preflight, 'access-control-allow-methods')!, /\bPOST\b/)
        assert.equal(headerOf(preflight, 'access-control-allow-headers'), 'content-type, x-mine')
        assert.match(headerOf(preflight, 'access-control-max-age')!, /^\d+$/)
      }
      for (const origin of [
        'https://app.test.evil',
        'http://app.test',
        'https://APP.test',
        'null',
        'https://app.test/',
      ]) {
        assert.deepEqual(corsHeaders(await ask(port, 'GET', `${prefix}/echo`, { origin })), [], origin)
        assert.deepEqual(
          corsHeaders(await ask(port, 'OPTIONS', `${prefix}/echo`, { origin, ...PREFLIGHT })),
          [],
          origin,
        )
      }
      assert.deepEqual(corsHeaders(await ask(port, 'GET', `${prefix}/echo`)), [])
    }
    // A browser shows a page the runtime's own errors only with permission.
    for (const [method, target, status] of [
      ['GET', '/nowhere', 404],
      ['PATCH', '/w/say', 405],
      ['GET', '/w/private', 401],
      ['GET', '/w/echo/%zz', 400],
    ] as const) {
      const response = await ask(port, method, target, { origin: LISTED })
      assert.equal(response.status, status)
      assert.equal(headerOf(response, 'access-control-allow-origin'), LISTED)
    }
  })

  it('never reflect what a client sends into the answer to a preflight', async (t) => {
    const { port } = await withOrigins(t, LISTED)
    const response = await ask(port, 'OPTIONS', '/w/echo', {
      origin: LISTED,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'a<b>;c',
    })
    assert.equal(headerOf(response, 'access-control-allow-headers'), undefined)
  })

  it('get permission for any origin, without credentials, when * is listed', async (t) => {
    const { port } = await withOrigins(t, '*')
    for (const origin of [LISTED, 'null', 'http://anything.test:1']) {
      const response = await ask(port, 'GET', '/w/echo', { origin })
      assert.equal(headerOf(response, 'access-control-allow-origin'), '*')
      assert.equal(headerOf(response, 'access-control-allow-credentials'), undefined)
      const preflight = await ask(port, 'OPTIONS', '/w/say', { origin, ...PREFLIGHT })
      assert.equal(headerOf(preflight, 'access-control-allow-origin'), '*')
      assert.equal(headerOf(preflight, 'access-control-allow-methods'), 'POST')
    }
  })

  it('are told apart by caches: every answer varies by origin where origins are listed', async (t) => {
    const { port } = await withOrigins(t, LISTED)
    for (const headers of [{}, { origin: 'https://other.test' }] as Record<string, string>[]) {
      assert.match(headerOf(await ask(port, 'GET', '/w/echo', headers), 'vary') ?? '', /\borigin\b/i)
    }
  })
})
