import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { JsonSchema, OpenApiDocument, RouteInfo } from '#heddle'
import type { Parameter } from '../../../src/devtools/apidocs/parameters.ts'
import type { Response } from '../../../src/devtools/apidocs/responses.ts'
import { shareService } from '../../support/shared-service.ts'
import { PAGE } from './fixtures/domains.ts'
import { at, referencesOf } from './schema-check.ts'

const PACKAGE = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))

const service = shareService(PAGE)

test('the document of the shipped domains and of odd ones', async (t) => {
  const heddle = service()
  const openApi: OpenApiDocument = (await heddle.json('/system/openapi.json')).body
  const operations = Object.entries(openApi.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  )
  const operationOf = (path: string, method = 'post') => openApi.paths[path]![method]!
  const bodyOf = (path: string) => {
    const schema = operationOf(path).requestBody!.content['application/json']!.schema!
    return (typeof schema.$ref === 'string' ? at(openApi, schema.$ref) : schema) as JsonSchema
  }

  await t.test('OpenAPI is valid, by a validator that nobody here wrote', async () => {
    const copy = structuredClone(openApi) as unknown as Parameters<Validator['validate']>[0]
    const { valid, errors } = await new Validator().validate(copy)
    assert.equal(valid, true, JSON.stringify(errors))
    for (const pointer of referencesOf(openApi)) at(openApi, pointer)
  })

  await t.test('it has the configured title, the version of package.json, and relative addresses', () => {
    assert.deepEqual([openApi.info.title, openApi.info.version], [PAGE.env.API_TITLE, PACKAGE.version])
    assert.deepEqual(openApi.servers, [{ url: '/' }])
  })

  await t.test('it lists every route but HEAD, each with an id of its own, tags and the plugin', async () => {
    const routes: RouteInfo[] = (await heddle.json('/odd/routes')).body
    assert.equal(operations.length, routes.filter(({ method }) => method !== 'HEAD').length)
    assert.ok(!operations.some(({ method }) => method === 'head'))
    const ids = operations.map(({ operation }) => operation.operationId)
    assert.equal(new Set(ids).size, ids.length)
    assert.ok(ids.every((id) => /^[A-Za-z0-9]+$/.test(id)))
    for (const { operation } of operations) {
      assert.ok(
        operation.tags.length > 0 && operation.tags.every((tag) => openApi.tags.some(({ name }) => name === tag)),
      )
      assert.match(operation['x-plugin'], /^\w+\.\w+$/)
    }
    assert.deepEqual(operationOf('/hello/{name}', 'get').tags, ['examples'])
  })

  await t.test('paths that differ in names alone are one path; every parameter of a path is told', () => {
    const pair = openApi.paths['/odd/pairs/{left}/{right}']!
    assert.deepEqual(Object.keys(pair).sort(), ['delete', 'get'])
    for (const { path, operation } of operations) {
      const inTemplate = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      const told = (operation.parameters ?? []).filter(({ in: place }) => place === 'path').map(({ name }) => name)
      assert.deepEqual(told, inTemplate, path)
    }
    assert.ok(openApi.paths['/odd/grüße/{wer}'])
  })

  await t.test('schemas that cannot be shown take anything and say why', () => {
    assert.deepEqual(bodyOf('/odd/foreign'), {
      description: 'Checked by a schema of nobody, which does not describe itself.',
    })
    assert.match(String(bodyOf('/odd/hostile').description), /not to be shown/)
  })

  await t.test('recursion, dates, big numbers, transforms and shared schemas are shown as they travel', () => {
    const tree = bodyOf('/odd/trees').properties as Record<string, JsonSchema>
    assert.deepEqual(tree.kids!.items, { $ref: '#/components/schemas/PostOddTreesBody' })
    const dates = bodyOf('/odd/dates').properties as Record<string, JsonSchema>
    assert.deepEqual(dates.at, { type: 'string', format: 'date-time' })
    assert.equal(dates.big!.type, 'string')
    const transforms = bodyOf('/odd/transforms')
    assert.equal((transforms.properties as Record<string, JsonSchema>).length!.type, 'string')
    assert.deepEqual(transforms.required, ['length', 'sum'])
    assert.equal(referencesOf(bodyOf('/odd/addresses')).length, 2)
  })

  await t.test('each runtime answer stands where it can happen, and nowhere else', () => {
    const statuses = (path: string, method?: string) => Object.keys(operationOf(path, method).responses).join(' ')
    assert.equal(statuses('/odd/same-id', 'get'), '200 400 500 503 504 default')
    assert.equal(statuses('/odd/search', 'get'), '200 400 422 500 503 504 default')
    assert.equal(statuses('/odd/pairs/{left}/{right}', 'delete'), '200 400 401 404 500 503 504 default')
    assert.equal(statuses('/odd/anything'), '200 400 408 413 415 500 503 504 default')
    assert.equal(statuses('/users'), '201 400 408 409 413 415 422 429 500 503 504 default')
    assert.equal(statuses('/system/logs/stream', 'get'), '200 400 500 503')
  })

  await t.test(
    'a route without a response schema answers JSON of any form: without content, generators read that nothing comes',
    async () => {
      const routes: RouteInfo[] = (await heddle.json('/odd/routes')).body
      const contentOf = ({ path, method, status }: RouteInfo) => {
        const { operation } = operations.find(
          (each) => each.operation['x-route'] === path && each.method === method.toLowerCase(),
        )!
        return (operation.responses[status] as { content: object }).content
      }
      const plain = routes.filter((route) => route.method !== 'HEAD' && !route.is_stream && !route.is_socket)
      const without = plain.filter(({ schemas }) => schemas.response === undefined)
      assert.ok(
        without.some(({ path }) => path === '/odd/routes') && without.length < plain.length,
        `${without.length}`,
      )
      for (const route of without) assert.deepEqual(contentOf(route), { 'application/json': {} }, route.path)
      for (const route of plain.filter((each) => !without.includes(each)))
        assert.ok('schema' in (contentOf(route) as { 'application/json': object })['application/json'], route.path)
    },
  )

  await t.test(
    'bodies come as JSON, as forms where a form can hold what is asked for, and as any type where bytes are',
    () => {
      const types = (path: string, method?: string) => Object.keys(operationOf(path, method).requestBody!.content)
      const all = ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data']
      assert.deepEqual(types('/odd/forms'), all)
      assert.deepEqual(types('/odd/trees'), ['application/json'])
      assert.equal(operationOf('/system/lanes', 'get').requestBody, undefined)
      assert.equal(operationOf('/odd/anything').requestBody!.required, false)
      assert.equal(operationOf('/odd/forms').requestBody!.required, true)
      for (const [path, type, isRefused] of [
        ['/odd/bytes', '*/*', false],
        ['/odd/stream', '*/*', false],
        ['/odd/parts', 'multipart/form-data', true],
      ] as const) {
        assert.deepEqual([types(path, 'put'), '415' in operationOf(path, 'put').responses], [[type], isRefused], path)
        assert.ok('413' in operationOf(path, 'put').responses)
      }
    },
  )

  await t.test('what asks for a token says so; streams are streams', () => {
    assert.deepEqual(operationOf('/users/me', 'get').security, [{ bearer: [] }])
    assert.deepEqual(operationOf('/users').security, [], 'nothing')
    const { '200': answer } = operationOf('/odd/ticks', 'get').responses
    assert.deepEqual(Object.keys((answer as { content: object }).content), ['text/event-stream'])
  })

  await t.test('any lane can ask for the routes', async () => {
    const routes: RouteInfo[] = (await heddle.json('/odd/routes')).body
    const { schemas, throws, ...route } = routes.find(({ path }) => path === '/odd/primary')!
    assert.deepEqual(Object.keys(schemas), ['body', 'response'])
    assert.deepEqual(Object.keys(throws), ['404', '409'])
    assert.deepEqual(route, {
      plugin: 'odd.HostOddBodies',
      method: 'PUT',
      path: '/odd/primary',
      is_stream: false,
      is_socket: false,
      host: 'primary',
      timeout_ms: 30_000,
      tags: [],
      summary: null,
      description: null,
      has_auth: false,
      security: null,
      idempotency: 'required',
      has_raw_body: false,
      streamed_body: null,
      status: 200,
    })
  })

  await t.test('the key of repeated requests is a header of the routes that want it', () => {
    const { parameters, responses } = operationOf('/odd/primary', 'put')
    const [{ name, in: place, required, description }] = parameters as [Parameter]
    assert.deepEqual([name, place, required], ['Idempotency-Key', 'header', true])
    assert.match(description!, /`idempotency-replayed: true`/)
    assert.deepEqual(responses['422'], { $ref: '#/components/responses/KeyReused' })
    // The key is optional there, and 422 is the answer to a body that does not fit, too.
    const { description: conflict } = operationOf('/users').responses['409'] as Response
    assert.match(conflict, /^The e-mail is taken Or: A request with this `Idempotency-Key` is still running/)
    assert.equal(operationOf('/odd/anything').responses['409'], undefined)
  })

  await t.test('answers that a route throws are listed, beside those of the runtime with the same status', () => {
    const { responses } = operationOf('/odd/primary', 'put')
    const [gone, taken] = [responses['404'], responses['409']] as Response[]
    assert.equal(gone!.description, 'There is none.')
    assert.match(taken!.description, /^It is taken\. Or: A request with this `Idempotency-Key` is still running/)
    const { anyOf } = taken!.content!['application/json']!.schema as { anyOf: JsonSchema[] }
    const [thrown, own] = anyOf as [{ properties: Record<string, JsonSchema> }, JsonSchema]
    assert.deepEqual(thrown.properties.code, { type: 'string', enum: ['TAKEN', 'LOCKED'] })
    const { $ref } = thrown.properties.details as { $ref: string }
    assert.deepEqual((at(openApi, $ref) as { required: string[] }).required, ['by'])
    assert.deepEqual(own, { $ref: '#/components/schemas/Failure' })
  })
})
