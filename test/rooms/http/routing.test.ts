import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Method } from '../../../src/contracts/http.ts'
import { type RouteEntry, RouteTable } from '../../../src/primary/http/routes.ts'
import { itHolds } from '../../support/listener.ts'
import { ask, assertFailure, headerOf, jsonOf } from '../../support/raw-client.ts'
import { shareHeddle } from '../../support/shared-process.ts'

const heddle = shareHeddle({ expectedError: ({ msg }) => /^\/[wp]\/throw failed: /.test(msg) })

for (const [thread, prefix] of [
  ['lane', '/w'],
  ['primary', '/p'],
] as const) {
  describe(`routes of a plugin in the ${thread}`, () => {
    const routeOf = async (path: string): Promise<{ route: string; data: unknown; path: string }> =>
      jsonOf(await ask(heddle.port, 'GET', `${prefix}/route${path}`)).data

    it('prefers a static path to a parameter, and a parameter to a wildcard', async () => {
      assert.equal((await routeOf('/static')).route, `${prefix}/route/static`)
      assert.equal((await routeOf('/other')).route, `${prefix}/route/:param`)
      assert.equal((await routeOf('/static/leaf')).route, `${prefix}/route/:param/leaf`)
      assert.equal((await routeOf('/a/b')).route, `${prefix}/route/*`)
      assert.equal((await routeOf('/static/b/c')).route, `${prefix}/route/*`)
      assert.equal((await routeOf('/staticky')).route, `${prefix}/route/:param`)
    })

    it('decodes each segment once, and never splits at an encoded slash', async () => {
      assert.deepEqual((await routeOf('/a%2Fb')).data, { param: 'a/b' })
      assert.deepEqual((await routeOf('/a%252Fb')).data, { param: 'a%2Fb' })
      assert.deepEqual((await routeOf('/%C3%A9%20+%3Fx=1%23')).data, { param: 'é +?x=1#' })
      assert.deepEqual((await routeOf('/a/b%2Fc/d')).data, { '*': 'a/b/c/d' })
      assert.equal((await routeOf('/a%2Fb')).path, `${prefix}/route/a%2Fb`)
    })

    it('finds nothing where a parameter would be empty', async () => {
      assertFailure(await ask(heddle.port, 'GET', `${prefix}/echo/`), 404, 'Not found')
      assertFailure(await ask(heddle.port, 'DELETE', `${prefix}/echo/`), 404, 'Not found')
      assertFailure(await ask(heddle.port, 'GET', `${prefix}/route//leaf`), 404, 'Not found')
    })

    it('takes dots, semicolons and double slashes as they are', async () => {
      assert.deepEqual((await routeOf('/..')).data, { param: '..' })
      assert.deepEqual((await routeOf('/a;b=c')).data, { param: 'a;b=c' })
      assertFailure(await ask(heddle.port, 'GET', `/${prefix}/echo`), 404, 'Not found')
      assertFailure(await ask(heddle.port, 'GET', `${prefix}%2Fecho`), 404, 'Not found')
    })

    it('answers HEAD for every GET with the length of the body and without the body', async () => {
      for (const path of ['/echo/a', '/binary', '/throw', '/private']) {
        // The id and the method are part of the echoed body: the request must be as long in both.
        const headers = { 'x-request-id': 'the-same-length' }
        const get = await ask(heddle.port, 'GET', prefix + path, headers)
        const head = await ask(heddle.port, 'HEAD', prefix + path, headers)
        assert.equal(head.status, get.status, path)
        assert.equal(head.body.length, 0)
        const echoesTheMethod = path === '/echo/a' ? 1 : 0
        assert.equal(Number(headerOf(head, 'content-length')), get.body.length + echoesTheMethod, path)
        assert.equal(headerOf(head, 'content-type'), headerOf(get, 'content-type'))
      }
    })

    it('refuses HEAD where there is no GET', async () => {
      const response = await ask(heddle.port, 'HEAD', `${prefix}/say`)
      assert.equal(response.status, 405)
      assert.equal(headerOf(response, 'allow'), 'POST')
      assert.equal(response.body.length, 0)
    })

    it('answers OPTIONS with the methods that the path has', async () => {
      const several = await ask(heddle.port, 'OPTIONS', `${prefix}/echo`)
      assert.equal(several.status, 204)
      assert.equal(headerOf(several, 'allow'), 'GET, POST, PUT, PATCH, DELETE, HEAD')
      assert.equal(headerOf(await ask(heddle.port, 'OPTIONS', `${prefix}/say`), 'allow'), 'POST')
      assertFailure(await ask(heddle.port, 'OPTIONS', `${prefix}/nowhere`), 404, 'Not found')
    })

    const assertNotAllowed = async (...methods: string[]): Promise<void> => {
      for (const method of methods) {
        const response = await ask(heddle.port, method, `${prefix}/echo/1`)
        assertFailure(response, 405, 'Method not allowed')
        assert.equal(headerOf(response, 'allow'), 'GET, POST, HEAD', method)
      }
    }

    it('answers 405 with Allow for a method that the path does not have', () =>
      assertNotAllowed('PUT', 'DELETE', 'TRACE'))

    itHolds(it, 'answers 405 with Allow for a method that HTTP does not know', () =>
      assertNotAllowed('FOO', 'get', 'CONNECT'),
    )

    it('answers 404 for a path that nobody has, whatever the body', async () => {
      assertFailure(await ask(heddle.port, 'GET', `${prefix}/nowhere`), 404, 'Not found')
      assertFailure(await ask(heddle.port, 'POST', `${prefix}/nowhere`, {}, 'a body'), 404, 'Not found')
      assert.equal((await ask(heddle.port, 'HEAD', `${prefix}/nowhere`)).status, 404)
    })

    itHolds(it, 'answers 404 for a path that nobody has, whatever the method', async () => {
      assertFailure(await ask(heddle.port, 'BREW', `${prefix}/nowhere`), 404, 'Not found')
    })
  })
}

it('has no built-in root page', async () => {
  assertFailure(await ask(heddle.port, 'GET', '/'), 404, 'Not found')
})

it('takes a concrete path before a template, whatever the method', () => {
  const table = new RouteTable()
  let number = 0
  const add = (method: Method, path: string): RouteEntry => {
    const entry = { number: ++number, method, path, zone: 'application', kind: 'endpoint' } as RouteEntry
    table.add(entry)
    return entry
  }
  const me = add('GET', '/users/me')
  const byId = add('DELETE', '/users/:id')
  add('GET', '/users/:id')
  add('POST', '/login')
  const page = add('GET', '/*')
  assert.equal(table.find('GET', '/users/me'), me)
  assert.equal(table.find('HEAD', '/users/me'), me)
  assert.equal(table.find('DELETE', '/users/me'), null, '405, and not the handler of the template')
  assert.deepEqual(
    table.allowed('/users/me', () => true),
    ['GET', 'HEAD'],
  )
  assert.equal(table.find('DELETE', '/users/7'), byId)
  assert.equal(table.find('GET', '/login'), page, 'a folder of files takes what else there is')
  table.remove(me)
  assert.equal(table.find('DELETE', '/users/me'), byId)
})
