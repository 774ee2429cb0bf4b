import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { temporaryFolder } from '../../support/folder.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const MOUNTED = fileURLToPath(new URL('../../fixtures/mounted', import.meta.url))

/** Libraries whose applications are functions of a Request, as their own clients use them. */
describe('behind http.mount', () => {
  const accounts = join(temporaryFolder({ after }), 'accounts.db')
  const service = shareService({ domains: [MOUNTED, SHIPPED], lanes: 2, env: { ACCOUNTS_PATH: accounts } })
  const ask = (path: string, init?: RequestInit) => service().fetch(path, init)
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    service().post(path, body, headers)
  const json = (path: string, init?: RequestInit) => service().json(path, init)

  it('an application of Hono answers on all of its ten routes', async () => {
    assert.equal(await (await ask('/library')).text(), 'A library')
    assert.deepEqual((await json('/library/books')).body, [{ id: 1, title: 'Weaving' }])
    assert.deepEqual((await json('/library/books/1')).body, { id: 1, title: 'Weaving' })
    assert.equal((await ask('/library/books/9')).status, 404)
    const made = await post('/library/books', { title: 'Knots' })
    assert.deepEqual([made.status, made.body], [201, { id: 2, title: 'Knots' }])
    const form = await json('/library/books/1', { method: 'PUT', body: new URLSearchParams({ title: 'Ropes' }) })
    assert.deepEqual(form.body, { title: 'Ropes' })
    assert.equal((await ask('/library/books/1', { method: 'DELETE' })).status, 204)
    const me = await json('/library/me', { headers: { 'x-caller': 'ada' } })
    assert.deepEqual(me.body, { user: { id: 'ada' } })
    assert.match(await (await ask('/library/events')).text(), /data: 1[\s\S]*data: 2[\s\S]*data: 3/)
    const old = await ask('/library/old', { redirect: 'manual' })
    assert.deepEqual([old.status, old.headers.get('location')], [301, '/library/books'])
    assert.deepEqual((await json('/library/fails')).body, { message: 'A page is missing' })
  })

  it('a router of tRPC answers queries, mutations and subscriptions', async () => {
    const input = encodeURIComponent(JSON.stringify({ name: 'Ada' }))
    const greeting = await json(`/trpc/greet?input=${input}`, { headers: { 'x-request-id': 'req-1' } })
    assert.deepEqual(greeting.body, { result: { data: 'hello Ada, says req-1' } })
    assert.deepEqual((await post('/trpc/add', { a: 1, b: 2 })).body, { result: { data: 3 } })
    assert.equal((await post('/trpc/add', { a: 1 })).status, 400)
    const events = await ask('/trpc/count', { headers: { accept: 'text/event-stream' } })
    assert.match(await events.text(), /data: 1[\s\S]*data: 2[\s\S]*data: 3/)
  })

  it('a server of GraphQL answers queries, subscriptions and its page', async () => {
    const query = { query: '{ hello(name: "Ada") caller }' }
    const { body } = await post('/graphql', query, { 'x-request-id': 'req-2' })
    assert.deepEqual(body, { data: { hello: 'hello Ada', caller: 'req-2' } })
    const headers = { accept: 'text/event-stream', 'content-type': 'application/json' }
    const events = await ask('/graphql', {
      method: 'POST',
      headers,
      body: JSON.stringify({ query: 'subscription { count }' }),
    })
    assert.match(await events.text(), /"count":1[\s\S]*"count":2[\s\S]*"count":3/)
    const page = await ask('/graphql', { headers: { accept: 'text/html' } })
    assert.match(page.headers.get('content-type') ?? '', /text\/html/)
  })

  it('better-auth signs up, in and out, and a route of ours knows the session', async () => {
    const user = { email: 'ada@example.com', password: 'a long password', name: 'Ada' }
    const origin = { origin: service().url }
    const signedUp = await post('/api/auth/sign-up/email', user, origin)
    assert.equal(signedUp.status, 200, JSON.stringify(signedUp.body))
    const signedIn = await post('/api/auth/sign-in/email', user, origin)
    const cookie = signedIn.headers
      .getSetCookie()
      .map((set) => set.split(';')[0])
      .join('; ')
    assert.deepEqual((await json('/account', { headers: { cookie } })).body, { email: 'ada@example.com' })
    assert.equal((await post('/api/auth/sign-out', {}, { ...origin, cookie })).status, 200)
    assert.deepEqual((await json('/account', { headers: { cookie } })).body, { email: null })
    assert.equal((await post('/api/auth/sign-in/email', { ...user, password: 'wrong' }, origin)).status, 401)
  })

  it('an MCP server answers its client', async () => {
    const client = new Client({ name: 'test', version: '1.0.0' })
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', service().url)))
    assert.deepEqual(
      (await client.listTools()).tools.map(({ name }) => name),
      ['add'],
    )
    const { content } = await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } })
    assert.deepEqual(content, [{ type: 'text', text: '3' }])
    await client.close()
  })
})
