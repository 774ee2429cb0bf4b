import assert from 'node:assert/strict'
import { realpathSync } from 'node:fs'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import type { Method } from '../../../src/contracts/http.ts'
import type { EndpointOptions } from '../../../src/contracts/http-request.ts'
import HttpTool from '../../../src/tools/http/index.ts'
import { buildTool, owner } from '../../support/tool-runtime.ts'

function build() {
  const { tool, recorded } = buildTool(HttpTool)
  const plugin = owner()
  return { ...tool.api(plugin), recorded, plugin }
}
const handler = () => ({ success: true })

test('an endpoint reaches the host with its owner, its method in capitals and its options', () => {
  const { addEndpoint, recorded, plugin } = build()
  const options = { tags: ['users'], body: z.object({ name: z.string() }), timeoutMs: 50, summary: 'Creates a user' }
  addEndpoint('/users', 'post', handler, options)
  assert.deepEqual(recorded.routes, [
    { kind: 'endpoint', owner: plugin, method: 'POST', path: '/users', handler, options },
  ])
  assert.equal(recorded.routes[0]!.owner, plugin)
})

test('a short form registers what addEndpoint registers, with the handler itself: a request costs the same', () => {
  const { addEndpoint, recorded, ...short } = build()
  const options = { tags: ['users'], timeoutMs: 50 }
  for (const method of ['get', 'post', 'put', 'patch', 'delete'] as const) {
    recorded.routes = []
    addEndpoint('/users/:id', method, handler)
    addEndpoint('/users/:id', method, handler, options)
    short[method]('/users/:id', handler)
    short[method]('/users/:id', options, handler)
    const [plain, full, ...shorter] = recorded.routes
    assert.deepEqual(shorter, [plain, full])
    assert.ok(shorter.every((each) => each.kind === 'endpoint' && each.handler === handler))
  }
  const swapped = short.get as unknown as (...args: unknown[]) => void
  assert.throws(() => swapped('/users', handler, options), /the options, an object, stand before the handler/)
  assert.throws(() => swapped('/users', options, undefined), /the handler must be a function/)
})

test('a stream reaches the host with empty options when it has none', () => {
  const { addStream, recorded, plugin } = build()
  addStream('/ticks', handler)
  assert.deepEqual(recorded.routes, [
    { kind: 'stream', owner: plugin, method: 'GET', path: '/ticks', handler, options: {} },
  ])
})

test('paths have segments, parameters of a whole segment, and a wildcard at their end', () => {
  const { addEndpoint, recorded } = build()
  const paths = [
    '/',
    '/users',
    '/users/',
    '/users/:id',
    '/a/:b_1/c/:_d',
    '/files/*',
    '/*',
    '/a.b-c_d~e',
    '/%20',
    '/(x)',
  ]
  for (const path of paths) addEndpoint(path, 'GET', handler)
  assert.deepEqual(
    recorded.routes.map(({ path }) => path),
    paths,
  )
})

const badPaths: [unknown, RegExp][] = [
  ['', /must start with '\/'/],
  ['users', /must start with '\/'/],
  ['*', /must start with '\/'/],
  ['/a?b=1', /'\?' or '#'/],
  ['/a#b', /'\?' or '#'/],
  ['//', /'\/\/'/],
  ['/a//b', /'\/\/'/],
  ['/a b', /blanks/],
  ['/a\n', /blanks/],
  ['/a\u0000', /control/],
  ['/:', /fill its segment/],
  ['/:1a', /fill its segment/],
  ['/:a-b', /fill its segment/],
  ['/a:b', /fill its segment/],
  ['/:a:b', /fill its segment/],
  ['/:a(\\d+)', /fill its segment/],
  ['/:a/x/:a', /twice/],
  ['/:_auth', /reserved/],
  ['/:__proto__', /reserved/],
  ['/*/a', /whole last segment/],
  ['/a*', /whole last segment/],
  ['/**', /whole last segment/],
  [`/${'a'.repeat(1024)}`, /at most 1024/],
  [undefined, /must be a string/],
  [{}, /must be a string/],
]
for (const [path, fault] of badPaths) {
  test(`${String(JSON.stringify(path)).slice(0, 40)} is no path, and the error says why`, () => {
    const { addEndpoint, addStream, recorded } = build()
    const expected = { code: 'HTTP_PATH_INVALID', message: fault }
    assert.throws(() => addEndpoint(path as string, 'GET', handler), expected)
    assert.throws(() => addStream(path as string, handler), expected)
    assert.deepEqual(recorded.routes, [])
  })
}

test('an error names the route', () => {
  assert.throws(() => build().addEndpoint('/a b', 'get', handler), /^HeddleError: GET "\/a b": /)
})

test('a method that is none is refused', () => {
  for (const method of ['', 'FETCH', 'GET ', undefined]) {
    assert.throws(() => build().addEndpoint('/a', method as Method, handler), /the method must be one of GET, POST/)
  }
})

test('a handler that is no function is refused', () => {
  assert.throws(() => build().addEndpoint('/a', 'GET', undefined as never), /the handler must be a function/)
  assert.throws(() => build().addStream('/a', {} as never), /the handler must be a function/)
})

test('a WebSocket reaches the host with its handlers, and with empty options when it has none', () => {
  const { addWebSocket, recorded, plugin } = build()
  const handlers = { open: handler, close: handler }
  addWebSocket('/talk/:room', handlers)
  assert.deepEqual(recorded.routes, [
    { kind: 'socket', owner: plugin, method: 'GET', path: '/talk/:room', handlers, options: {} },
  ])
})

test('a WebSocket needs a path and one handler at least', () => {
  const { addWebSocket, recorded } = build()
  const bad: [path: unknown, handlers: unknown, fault: RegExp][] = [
    ['talk', { open: handler }, /must start with '\/'/],
    ['/talk', undefined, /must be an object/],
    ['/talk', {}, /open, message or close/],
    ['/talk', { message: 'no' }, /message must be a function/],
  ]
  for (const [path, handlers, message] of bad) {
    assert.throws(() => addWebSocket(path as string, handlers as object), { code: 'HTTP_PATH_INVALID', message })
  }
  assert.throws(() => addWebSocket('/talk', { open: handler }, { authValidator: true as never }), /authValidator/)
  assert.deepEqual(recorded.routes, [])
})

test('a folder reaches the host as the absolute path that it really is, its prefix without a slash', () => {
  const { mountStatic, recorded, plugin } = build()
  const directory = realpathSync('src')
  mountStatic('/', 'src/../src')
  mountStatic('/a/b/', pathToFileURL(directory))
  assert.deepEqual(recorded.mounts, [
    { owner: plugin, prefix: '', directory },
    { owner: plugin, prefix: '/a/b', directory },
  ])
})

test('a folder that is none, or is not there, is refused with its path', () => {
  const { mountStatic, recorded } = build()
  const bad: [prefix: unknown, directory: unknown, fault: RegExp][] = [
    ['/a', '/no/such/folder', /folder under "\/a": there is no folder \/no\/such\/folder$/],
    ['/a', 'package.json', /package\.json is no folder$/],
    ['/a', 5, /must be a path or a file: URL/],
    ['/a', new URL('https://example.org/'), /https:\/\/example\.org/],
    ['a', 'src', /must start with '\/'/],
    ['/:a', 'src', /no parameters/],
    ['/*', 'src', /no parameters/],
  ]
  for (const [prefix, directory, message] of bad) {
    assert.throws(() => mountStatic(prefix as string, directory as string), { code: 'HTTP_PATH_INVALID', message })
  }
  assert.deepEqual(recorded.mounts, [])
})

test('a fetch handler reaches the host as a function, its prefix without a slash', () => {
  const { mount, recorded, plugin } = build()
  const fetch = () => new Response('hello')
  mount('/', fetch)
  mount('/a/b/', { fetch }, { stripPrefix: true, timeoutMs: 50 })
  const [first, second] = recorded.fetchMounts
  assert.deepEqual(first, {
    owner: plugin,
    prefix: '',
    handler: fetch,
    options: {},
    stripPrefix: false,
    crossOrigin: false,
  })
  assert.deepEqual([second!.prefix, second!.stripPrefix, second!.options], ['/a/b', true, { timeoutMs: 50 }])
  assert.ok(second!.handler({} as Request, {} as never) instanceof Response)
})

test('what is no fetch handler, a prefix with parameters, and options that are not its own are refused', () => {
  const { mount, recorded } = build()
  const fetch = () => new Response('hello')
  const bad: [prefix: unknown, handler: unknown, options: unknown, fault: RegExp][] = [
    ['/a', undefined, {}, /mount under "\/a": the handler must be a function, or have `fetch`/],
    ['/a', { fetch: 5 }, {}, /the handler must be a function, or have `fetch`/],
    ['a', fetch, {}, /must start with '\/'/],
    ['/:a', fetch, {}, /no parameters/],
    ['/a', fetch, { body: 'stream' }, /there is no option body for it: there are guards, .*stripPrefix/],
    ['/a', fetch, { stripPrefix: 1 }, /stripPrefix must be true or false/],
    ['/a', fetch, { timeoutMs: 0 }, /timeoutMs must be a whole number/],
    ['/a', fetch, { maxBytes: 0.5 }, /maxBytes must be a whole number/],
  ]
  for (const [prefix, handler, options, message] of bad)
    assert.throws(() => mount(prefix as string, handler as never, options as object), {
      code: 'HTTP_PATH_INVALID',
      message,
    })
  assert.deepEqual(recorded.fetchMounts, [])
})

const badOptions: unknown[] = [
  null,
  'tags',
  { tags: 'users' },
  { tags: [1] },
  { authValidator: true },
  { timeoutMs: 0 },
  { timeoutMs: 1.5 },
  { timeoutMs: '5' },
  { timeoutMs: 2 ** 31 },
  { summary: 1 },
  { idempotency: 'optional' },
  { body: {} },
  { body: { '~standard': {} } },
  { query: 'schema' },
  { params: null },
  { response: () => true },
]
for (const options of [
  { idempotency: true },
  { idempotencyTtlMs: 5 },
  { idempotencyScope: () => 'all' },
  { idempotency: 'required', idempotencyScope: 'all' },
  { idempotency: 'required', idempotencyTtlMs: 0 },
  { idempotency: 'required', idempotencyTtlMs: 367 * 86_400_000 },
]) {
  test(`the options ${JSON.stringify(options)} are refused for POST`, () => {
    assert.throws(() => build().addEndpoint('/a', 'POST', handler, options as EndpointOptions), {
      code: 'HTTP_PATH_INVALID',
    })
  })
}
for (const options of badOptions) {
  test(`the options ${JSON.stringify(options)} are refused`, () => {
    assert.throws(() => build().addEndpoint('/a', 'GET', handler, options as EndpointOptions), {
      code: 'HTTP_PATH_INVALID',
    })
  })
}
