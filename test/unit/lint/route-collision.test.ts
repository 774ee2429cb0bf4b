import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture, plugin } from '../../support/lint-fixture.ts'

const RULE = 'route-collision'

test('one method and path shape registered twice is found at the second, and both are named', async (t) => {
  const { findings } = await fixture(t, {
    'a/plugins/show.ts': plugin('Show', "this.#http.addEndpoint('/users/:id', 'GET', this.show)"),
    'b/plugins/find.ts': plugin(
      'Find',
      "const { addEndpoint } = this.#http\naddEndpoint(`/users/:name`, 'get', this.find)\naddEndpoint('/live', 'GET', this.find)",
    ),
    'c/plugins/live.ts': plugin('Live', "this.#http\n  .addStream('/live', this.live)"),
  })
  assert.deepEqual(await findings(RULE), [
    'b/plugins/find.ts:10 error GET /users/:name of b.Find collides with GET /users/:id of a.Show (a/plugins/show.ts:9)',
    'c/plugins/live.ts:10 error GET /live of c.Live collides with GET /live of b.Find (b/plugins/find.ts:11)',
  ])
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

test('wildcards, chosen and looped methods, web sockets and routes of a file that plugins import collide too', async (t) => {
  const { findings } = await fixture(t, {
    'a/live.ts': `import type { Http } from '#heddle'
export const addLive = (http: Http) => http.addEndpoint('/live', 'GET', () => ({}))
`,
    'a/plugins/a.ts': `import { addLive } from '../live.ts'
${plugin(
  'A',
  `this.#http.addEndpoint('/files/:a/*', 'GET', this.x)
this.#http.addEndpoint('/files/:b/*', 'GET', this.x)
for (const method of ['GET', 'PUT']) this.#http.addEndpoint('/each', method, this.x)
this.#http.addWebSocket('/chat', this.x)
this.#http.addEndpoint('/chat', 'GET', this.x)`,
)}`,
    'b/plugins/b.ts': plugin(
      'B',
      `this.#http.addEndpoint('/each', fast ? 'PUT' : 'PATCH', this.x)
this.#http.addWebSocket('/chat', this.x)
this.#http.addEndpoint('/live', 'GET', this.x)`,
    ),
  })
  assert.deepEqual(await findings(RULE), [
    'a/plugins/a.ts:11 error GET /files/:b/* of a.A collides with GET /files/:a/* of a.A (a/plugins/a.ts:10)',
    'b/plugins/b.ts:9 error PUT /each of b.B collides with PUT /each of a.A (a/plugins/a.ts:12)',
    'b/plugins/b.ts:10 error WEBSOCKET /chat of b.B collides with WEBSOCKET /chat of a.A (a/plugins/a.ts:13)',
    'b/plugins/b.ts:11 error GET /live of b.B collides with GET /live of a.A (a/live.ts:2)',
  ])
})

test('registrations in different arms of one branch do not collide', async (t) => {
  const body = `if (legacy) this.#http.addEndpoint('/a', 'GET', this.x)
else if (old) { this.#http.addEndpoint('/a', 'GET', this.x) }
else this.#http.addEndpoint('/a', 'GET', this.x)
if (legacy) this.#http.addEndpoint('/b', 'GET', this.x)
if (!legacy) this.#http.addEndpoint('/b', 'GET', this.x)`
  const { findings } = await fixture(t, { 'a/plugins/a.ts': plugin('A', body) })
  assert.deepEqual(await findings(RULE), [
    'a/plugins/a.ts:13 error GET /b of a.A collides with GET /b of a.A (a/plugins/a.ts:12)',
  ])
})
