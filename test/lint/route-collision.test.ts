import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture, plugin } from './fixture.ts'

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
