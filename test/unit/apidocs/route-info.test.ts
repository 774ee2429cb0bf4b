import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { contactOf } from '../../../domains/system/api-info.ts'
import { contractText } from '../../../src/core/schemas/json-schema.ts'
import { openApiDocument } from '../../../src/devtools/apidocs/openapi.ts'
import { Routing, routeInfo } from '../../../src/primary/http/routes.ts'
import { laneOf, routeOf } from '../../support/fake-lane.ts'

test('the contact is the author of package.json, and where its faults are told', () => {
  const ada = { name: 'Ada Lovelace', email: 'ada@example.com', url: 'https://example.com' }
  assert.deepEqual(contactOf({ author: 'Ada Lovelace <ada@example.com> (https://example.com)' }), ada)
  assert.deepEqual(contactOf({ author: ada }), ada)
  assert.deepEqual(contactOf({ author: 'Ada' }), { name: 'Ada' })
  assert.deepEqual(contactOf({ author: 'Ada (https://example.com)', bugs: 'https://example.com/bugs' }), {
    name: 'Ada',
    url: 'https://example.com/bugs',
  })
  assert.deepEqual(contactOf({ bugs: { email: 'bugs@example.com' } }), { email: 'bugs@example.com' })
  assert.equal(contactOf({}), undefined)
})

const authValidator = () => null

test('a route that asks for nothing and promises nothing has no contract to carry', () => {
  assert.equal(contractText({ tags: ['shop'], timeoutMs: 5 }), undefined)
  assert.equal(contractText({ authValidator }), '{"hasAuth":true,"schemas":{}}')
})

test('what a route asks for is that of the newest code, and older code does not bring it back', (t) => {
  const routing = new Routing(30_000)
  const adopt = (generation: number, key: string) => {
    const contract = contractText({ authValidator, body: z.object({ [key]: z.string() }) })
    const routes = [routeOf('shop.Sell', '/sell', { contract })]
    routing.register(laneOf(t, { generation, manifest: { routes } }), () => {})
  }
  const asked = () => {
    const [{ has_auth, schemas }] = routing.table.list().map(routeInfo) as [ReturnType<typeof routeInfo>]
    return [has_auth, ...Object.keys(schemas.body!.properties as object)]
  }
  adopt(0, 'old')
  assert.deepEqual(asked(), [true, 'old'])
  adopt(1, 'fresh')
  assert.deepEqual(asked(), [true, 'fresh'])
  adopt(0, 'old')
  assert.deepEqual(asked(), [true, 'fresh'])
})

test('openApiDocument(): a mounted application may answer with any type', (t) => {
  const routing = new Routing(30_000)
  const routes = [routeOf('shop.Mount', '/files/*', { method: 'ALL' }), routeOf('shop.Sell', '/sell')]
  routing.register(laneOf(t, { manifest: { routes } }), () => {})
  const info = { title: 'Shop', version: '1.0.0' }
  const { paths } = openApiDocument(routing.table.list().map(routeInfo), info)
  const typesOf = (path: string) => {
    const answer = paths[path]!.get!.responses['200']!
    return 'content' in answer ? Object.keys(answer.content!) : []
  }
  assert.deepEqual([typesOf('/files/{rest}'), typesOf('/sell')], [['*/*'], ['application/json']])
  assert.match(paths['/files/{rest}']!.get!.description, /whatever the method/)
})
