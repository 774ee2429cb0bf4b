import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { ApiError, type ClientOptions, Transport, Unreachable } from '../../../src/devtools/client/core.ts'

type Answer = (response: ServerResponse, request: IncomingMessage) => void

const status =
  (code: number, headers: Record<string, string> = {}, body = '{}'): Answer =>
  (response) =>
    response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(body)
const breakOff: Answer = (response) => void response.destroy()

/** A server that answers its requests one by one as it is told, and the last way to all that follow. */
async function serving(t: TestContext, answers: Answer[], options: ClientOptions = {}) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    answers[Math.min(requests.length, answers.length) - 1]!(response, request)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { requests, client: new Transport({ baseUrl: `http://127.0.0.1:${port}/api/`, ...options }) }
}

test('a request that is idempotent is sent again, and as often as the client may', async (t) => {
  const { client, requests } = await serving(t, [
    breakOff,
    status(503, { 'retry-after': '0' }),
    status(200, {}, '{"a":1}'),
  ])
  assert.deepEqual(await client.request('GET', '/x?y=1'), { a: 1 })
  assert.deepEqual(
    requests.map(({ url }) => url),
    Array(3).fill('/api/x?y=1'),
  )

  const down = await serving(t, [status(503, { 'retry-after': '0' }, '{"success":false,"error":"Full"}')])
  const result = await down.client.request('DELETE', '/x', {}, { retries: 1 }).result()
  assert.ok(!result.ok)
  assert.deepEqual([result.status, result.message, result.attempts, down.requests.length], [503, 'Full', 2, 2])
})

test('one that is not idempotent is sent once, unless it has a key, which stays the same', async (t) => {
  const once = await serving(t, [breakOff, status(200)])
  await assert.rejects(async () => once.client.request('POST', '/x', { body: {} }), Unreachable)
  assert.equal(once.requests.length, 1)

  const { client, requests } = await serving(t, [
    breakOff,
    status(409, { 'retry-after': '0' }),
    status(201, {}, '{"success":true}'),
  ])
  await client.call('POST', '/orders', { body: { item: 'tea', quantity: 1 } }, {}, { isKeyed: true })
  const keys = requests.map(({ headers }) => headers['idempotency-key'])
  assert.equal(keys.length, 3)
  assert.equal(new Set(keys).size, 1)
  await client.call('POST', '/orders', { body: { item: 'tea', quantity: 1 } }, {}, { isKeyed: true })
  assert.notEqual(requests.at(-1)!.headers['idempotency-key'], keys[0])
})

test('a date says how long to wait, a conflict without a key is final, and a stream is never repeated', async (t) => {
  const date = new Date(Date.now() + 7_200_000).toUTCString()
  const dated = await serving(t, [status(429, { 'retry-after': date })])
  const late = await dated.client.request('GET', '/x').result()
  assert.ok(!late.ok && late instanceof ApiError && late.attempts === 1)
  assert.ok(late.retryAfterMs! > 7_000_000 && late.retryAfterMs! <= 7_200_000)

  const conflict = await serving(t, [status(409, { 'retry-after': '0' })])
  await assert.rejects(async () => conflict.client.request('PUT', '/x', { body: {} }), ApiError)
  const stream = () => new ReadableStream<Uint8Array>({ start: (controller) => controller.close() })
  const broken = await serving(t, [breakOff])
  await assert.rejects(async () => broken.client.request('PUT', '/x', { body: stream() }), Unreachable)
  assert.deepEqual([conflict.requests.length, broken.requests.length], [1, 1])
})

test('a silent service is left after `timeoutMs`, and at once when the signal of the caller says so', async (t) => {
  const { client } = await serving(t, [() => {}], { timeoutMs: 20, retries: 0 })
  const result = await client.request('GET', '/x').result()
  assert.ok(!result.ok)
  assert.equal(result.code, 'TIMED_OUT')

  const leaving = new AbortController()
  const left = await serving(t, [() => leaving.abort(new Error('Left'))])
  await assert.rejects(left.client.request('GET', '/x', {}, { signal: leaving.signal }).result(), { message: 'Left' })
  const waiting = new AbortController()
  const waits = await serving(t, [
    (response) => {
      status(503, { 'retry-after': '19' })(response, response.req)
      response.on('close', () => waiting.abort(new Error('Gone')))
    },
  ])
  await assert.rejects(async () => waits.client.request('GET', '/x', {}, { signal: waiting.signal }), {
    message: 'Gone',
  })
})

test('answers come as what they are: JSON, text, bytes, nothing', async (t) => {
  const text = { 'content-type': 'text/csv' }
  const bytes = { 'content-type': 'image/png' }
  const { client } = await serving(t, [
    status(200, text, 'a,b'),
    status(200, bytes, 'PNG'),
    status(204),
    status(500, { 'content-type': 'text/html' }, '<h1>'),
  ])
  assert.equal(await client.request('GET', '/x'), 'a,b')
  assert.equal(await (await client.request<Blob>('GET', '/x')).text(), 'PNG')
  assert.equal(await client.request('GET', '/x'), undefined)
  const failure = await client.request('GET', '/x').catch((error: ApiError) => error)
  assert.ok(failure instanceof ApiError)
  assert.deepEqual([failure.message, failure.body, failure.code], ['500 Internal Server Error', '<h1>', undefined])
})

test('a stream that breaks is opened again, and not for ever', async (t) => {
  const head = { 'content-type': 'text/event-stream' }
  const piece =
    (text: string): Answer =>
    (response) => {
      response.writeHead(200, head).write(text, () => response.destroy())
    }
  const { client, requests } = await serving(t, [
    piece(': hello\n\nevent: x\r\ndata: {"n"\r\ndata:  :1}\r\n\r\ndata: {"n":'),
    (response) => response.writeHead(200, head).end('data: {"n":2}\n\n'),
  ])
  const frames: unknown[] = []
  for await (const frame of client.stream('/ticks')) frames.push(frame)
  assert.deepEqual([frames, requests.length], [[{ n: 1 }, { n: 2 }], 2])

  const broken = await serving(t, [piece(': nothing\n\n')], { retries: 1 })
  await assert.rejects(async () => {
    for await (const _ of broken.client.stream('/ticks'));
  }, Unreachable)
  assert.equal(broken.requests.length, 2)
})

test('cookies are kept by path and time, and sent with the origin', async (t) => {
  const set =
    (...cookies: string[]): Answer =>
    (response) =>
      response.writeHead(200, { 'set-cookie': cookies }).end()
  const { client, requests } = await serving(
    t,
    [
      set('a=1; Path=/', 'b=2; Path=/api/deep', 'c=3; Max-Age=0', 'd=a=b; HttpOnly'),
      set('a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT'),
      set(),
    ],
    { cookies: true },
  )
  for (const path of ['/', '/deep/er', '/']) await client.request('POST', path)
  assert.deepEqual(
    requests.map(({ headers }) => headers.cookie),
    [undefined, 'a=1; b=2; d=a=b', 'd=a=b'],
  )
  assert.match(requests[0]!.headers.origin!, /^http:\/\/127\.0\.0\.1:\d+$/)
})

test('a service that is not there is told with its address and the reason', async () => {
  const client = new Transport({ baseUrl: 'http://127.0.0.1:1', retries: 0 })
  const result = await client.request('GET', '/secret').result()
  assert.ok(!result.ok)
  assert.match(result.message, /^http:\/\/127\.0\.0\.1:1\/secret cannot be reached: ./)
})
