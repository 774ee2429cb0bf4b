import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertFindings, fixture, plugin } from '../../support/lint-fixture.ts'

const RULE = 'route-collision'

const collision = (one: string, other: string): string => `//! error ${one} collides with ${other}`

test('one method and path shape registered twice is found at the second, and both are named', (t) => {
  const [show, find] = ['GET /users/:id of a.Show (a/plugins/show.ts:9)', 'GET /live of b.Find (b/plugins/find.ts:11)']
  return assertFindings(t, RULE, {
    'a/plugins/show.ts': plugin('Show', "this.#http.addEndpoint('/users/:id', 'GET', this.show)"),
    'b/plugins/find.ts': plugin(
      'Find',
      `const { addEndpoint } = this.#http
addEndpoint(\`/users/:name\`, 'get', this.find) ${collision('GET /users/:name of b.Find', show)}
addEndpoint('/live', 'GET', this.find)`,
    ),
    'c/plugins/live.ts': plugin(
      'Live',
      `this.#http
  .addStream('/live', this.live) ${collision('GET /live of c.Live', find)}`,
    ),
  })
})

test('other methods, HEAD beside GET, static beside parameter beside wildcard, and unknown paths do not collide', async (t) => {
  const body = `this.#http.addEndpoint('/users/:id', 'GET', this.x)
this.#http.addEndpoint('/users/:id', 'HEAD', this.x)
this.#http.addEndpoint('/users/:id', 'PUT', this.x)
this.#http.addEndpoint('/users/me', 'GET', this.x)
this.#http.addEndpoint('/users/*', 'GET', this.x)
this.#http.addEndpoint(path, 'GET', this.x)
this.#http.addEndpoint(path, 'GET', this.x)`
  const { lint } = await fixture(t, { 'a/plugins/a.ts': plugin('A', body) })
  const { findings, checked } = await lint()
  assert.deepEqual(findings, [])
  assert.equal(checked.routes, 5)
})

test('wildcards, chosen and looped methods, web sockets and routes of a file that plugins import collide too', (t) => {
  const of = (route: string, line: number) => `${route} of a.A (a/plugins/a.ts:${line})`
  return assertFindings(t, RULE, {
    'a/live.ts': `import type { Http } from '#heddle'
export const addLive = (http: Http) => http.addEndpoint('/live', 'GET', () => ({}))
`,
    'a/plugins/a.ts': `import { addLive } from '../live.ts'
${plugin(
  'A',
  `this.#http.addEndpoint('/files/:a/*', 'GET', this.x)
this.#http.addEndpoint('/files/:b/*', 'GET', this.x) ${collision('GET /files/:b/* of a.A', of('GET /files/:a/*', 10))}
for (const method of ['GET', 'PUT']) this.#http.addEndpoint('/each', method, this.x)
this.#http.addWebSocket('/chat', this.x)
this.#http.addEndpoint('/chat', 'GET', this.x)`,
)}`,
    'b/plugins/b.ts': plugin(
      'B',
      `this.#http.addEndpoint('/each', fast ? 'PUT' : 'PATCH', this.x) ${collision('PUT /each of b.B', of('PUT /each', 12))}
this.#http.addWebSocket('/chat', this.x) ${collision('WEBSOCKET /chat of b.B', of('WEBSOCKET /chat', 13))}
this.#http.addEndpoint('/live', 'GET', this.x) ${collision('GET /live of b.B', 'GET /live of a.A (a/live.ts:2)')}`,
    ),
  })
})

test('registrations in different arms of one branch do not collide', (t) => {
  const body = `if (legacy) this.#http.addEndpoint('/a', 'GET', this.x)
else if (old) { this.#http.addEndpoint('/a', 'GET', this.x) }
else this.#http.addEndpoint('/a', 'GET', this.x)
if (legacy) this.#http.addEndpoint('/b', 'GET', this.x)
if (!legacy) this.#http.addEndpoint('/b', 'GET', this.x) ${collision('GET /b of a.A', 'GET /b of a.A (a/plugins/a.ts:12)')}`
  return assertFindings(t, RULE, { 'a/plugins/a.ts': plugin('A', body) })
})

test('a fetch handler collides with what has its prefix or all below it, and with no path of its own', (t) => {
  const served = 'ALL /api/* of a.Serve (a/plugins/serve.ts:9)'
  return assertFindings(t, RULE, {
    'a/plugins/serve.ts': plugin('Serve', "this.#http.mount('/api', app.fetch)"),
    'b/plugins/find.ts': plugin(
      'Find',
      `this.#http.addEndpoint('/api', 'GET', this.find) ${collision('GET /api of b.Find', served)}
this.#http.addEndpoint('/api/own', 'GET', this.find)
this.#http.mount('/api/', app) ${collision('ALL /api/* of b.Find', served)}`,
    ),
  })
})
