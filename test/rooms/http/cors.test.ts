// Cross-origin requests are answered by the rules of `Cors`, whatever the answer is. Those rules: test/unit/http/access.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plugin } from '#heddle/testing'
import AnswerInPrimary from '../../fixtures/http/serving/probe/plugins/answer-in-primary.ts'
import { ask, headerOf } from '../../support/raw-client.ts'

const LISTED = 'https://app.test'
const PREFLIGHT = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type, x-mine' }
const ALLOW = 'access-control-allow-origin'

test('no page gets permission when no origin is listed', async (t) => {
  const { port } = await plugin(t, AnswerInPrimary)
  for (const origin of [LISTED, 'null', '*']) {
    const preflight = await ask(port, 'OPTIONS', '/p/echo', { origin, ...PREFLIGHT })
    assert.equal(preflight.status, 204)
    for (const { head } of [await ask(port, 'GET', '/p/echo', { origin }), preflight])
      assert.doesNotMatch(head, /access-control-/)
  }
})

test('a page of a listed origin gets permission, for the runtime’s own errors, too, and no other page does', async (t) => {
  const { port } = await plugin(t, AnswerInPrimary, { env: { HTTP_CORS_ORIGINS: LISTED } })
  for (const [method, target, status] of [
    ['GET', '/p/echo', 200],
    ['OPTIONS', '/p/say', 204],
    ['GET', '/nowhere', 404],
    ['PATCH', '/p/say', 405],
    ['GET', '/p/private', 401],
    ['GET', '/p/echo/%zz', 400],
  ] as const) {
    const response = await ask(port, method, target, { origin: LISTED, ...PREFLIGHT })
    assert.deepEqual([response.status, headerOf(response, ALLOW)], [status, LISTED], target)
    assert.equal(headerOf(response, 'access-control-allow-methods'), method === 'OPTIONS' ? 'POST' : undefined)
    const other = await ask(port, method, target, { origin: 'https://app.test.evil', ...PREFLIGHT })
    assert.equal(headerOf(other, ALLOW), undefined, target)
    for (const each of [response, other]) assert.match(headerOf(each, 'vary') ?? '', /\borigin\b/i)
  }
})
