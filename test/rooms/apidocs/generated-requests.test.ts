import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { OpenApiDocument } from '#heddle'
import type { Heddle } from '../../support/heddle.ts'
import { SEED } from '../../support/random.ts'
import { shareService } from '../../support/shared-service.ts'
import { BODY_LIMIT, PAGE } from './fixtures/domains.ts'
import { at, faultsOf } from './schema-check.ts'
import { SchemaValues } from './schema-values.ts'

/** Requests of each kind for each operation. */
const ROUNDS = 5
const FORM = 'application/x-www-form-urlencoded'

type Operation = OpenApiDocument['paths'][string][string]

interface Sent {
  operation: Operation
  request: string
  status: number
  type: string
  text: string
}

const service = shareService(PAGE)

test(`every answer to a generated request is one that the document tells of (seed ${SEED})`, async (t) => {
  const heddle = service()
  const document = (await heddle.json('/system/openapi.json')).body as OpenApiDocument
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const own = operations.filter(({ path }) => path.startsWith('/odd/'))
  assert.ok(own.length >= 25, `${own.length} operations`)
  const values = new SchemaValues(document, SEED)
  const count = { valid: 0, refused: 0 }

  for (const { path, method, operation } of own) {
    const send = sender(heddle, path, method, operation)
    for (let round = 0; round < ROUNDS; round++) {
      const good = inputOf(document, operation, values)
      const sent = await send(good)
      holds(document, sent)
      if (good.isCertain) {
        assert.equal(sent.status, 200, `${sent.request} was made by the schema\n${sent.text}`)
        count.valid++
      }
      for (const bad of spoiled(operation, good, values)) {
        const refused = await send(bad)
        holds(document, refused)
        if (bad.expected === undefined) continue
        assert.equal(refused.status, bad.expected, `${refused.request}\n${refused.text}`)
        count.refused++
      }
    }
  }
  assert.ok(count.valid > ROUNDS * 15 && count.refused > ROUNDS * 15, JSON.stringify(count))
  t.diagnostic(JSON.stringify(count))
})

const FORM_OF_ONE = {
  type: 'multipart/form-data; boundary=cut',
  body: '--cut\r\ncontent-disposition: form-data; name="a"\r\n\r\nb\r\n--cut--\r\n',
}

interface Input {
  params: Record<string, string>
  query: [name: string, value: string][]
  body?: string | URLSearchParams
  type?: string
  token?: string
  /** True when the document decides alone whether the request is valid. */
  isCertain: boolean
  expected?: number
}

function inputOf(document: object, { parameters = [], requestBody, security }: Operation, values: SchemaValues): Input {
  const input: Input = { params: {}, query: [], isCertain: true, ...(security.length > 0 ? { token: 'good' } : {}) }
  for (const { name, in: place, required, schema } of parameters) {
    if (place === 'header') continue
    const value = values.valid(schema)
    if (place === 'path') input.params[name] = String(value === '' || value === '.' || value === '..' ? 'x' : value)
    else if (schema.additionalProperties === true) input.isCertain = false
    else if (required || values.below(2) === 0) {
      for (const item of [value].flat()) input.query.push([name, String(item)])
      // A list of one value looks like a single value; a union may need a parameter that is not required.
      if (schema.type === 'array') input.isCertain = false
    } else if (!parameters.some((one) => one.required)) input.isCertain = false
  }
  if (requestBody === undefined) return input
  if ('*/*' in requestBody.content) return { ...input, type: 'text/plain', body: 'of any type', isCertain: true }
  if (Object.keys(requestBody.content).join() === 'multipart/form-data') return { ...input, ...FORM_OF_ONE }
  const type = values.pick(Object.keys(requestBody.content).filter((name) => name.endsWith('json') || name === FORM))
  const schema = requestBody.content[type]!.schema ?? {}
  const value = values.valid(schema)
  assert.deepEqual(faultsOf(document, schema, value), [], 'what is generated fits')
  input.type = type
  // Code that checks a value may accept anything.
  if (Object.keys(schema).length === 0 || 'description' in schema) input.isCertain = false
  if (type === FORM && typeof value === 'object') {
    input.body = new URLSearchParams(
      Object.entries(value ?? {}).map(([key, item]): [string, string] => [key, String(item)]),
    )
  } else input.body = JSON.stringify(value)
  return input
}

/** The same input with one fault, and the status that it must get, when that is certain. */
function spoiled({ parameters = [], requestBody, security }: Operation, good: Input, values: SchemaValues): Input[] {
  const bad: Input[] = []
  if (security.length > 0) {
    bad.push({ ...good, token: '', expected: 401 }, { ...good, token: 'bad', expected: 401 })
  }
  const required = parameters.filter(({ in: place, required }) => place === 'query' && required)
  for (const { name } of required) {
    bad.push({ ...good, query: good.query.filter(([key]) => key !== name), expected: 422 })
  }
  for (const { name, in: place, schema } of parameters) {
    const wrong = values.invalid(schema)
    if (wrong === undefined || schema.type === 'array') continue
    const text = typeof wrong === 'object' ? 'wrong' : String(wrong)
    if (place === 'path' && text !== '') bad.push({ ...good, params: { ...good.params, [name]: text } })
    if (place === 'query') bad.push({ ...good, query: [...good.query.filter(([key]) => key !== name), [name, text]] })
  }
  if (requestBody === undefined) return bad
  const json = requestBody.content['application/json']
  if (json === undefined) return bad
  const isChecked =
    json.schema?.type !== undefined || json.schema?.$ref !== undefined || json.schema?.oneOf !== undefined
  bad.push({ ...good, type: 'application/json', body: '{"cut": ', expected: 400 })
  bad.push({ ...good, type: 'application/json', body: '{"__proto__": 1}', expected: 400 })
  bad.push({ ...good, type: 'application/json', body: JSON.stringify('x'.repeat(BODY_LIMIT)), expected: 413 })
  bad.push({ ...good, type: 'application/json; charset=latin1', body: '{}', expected: 415 })
  const wrong = values.invalid(json.schema)
  if (isChecked) {
    bad.push({ ...good, type: 'text/plain', body: 'text', expected: 415 })
    if (wrong !== undefined)
      bad.push({ ...good, type: 'application/json', body: JSON.stringify(wrong), isCertain: false })
  }
  return bad
}

function sender({ url }: Heddle, path: string, method: string, operation: Operation) {
  return async ({ params, query, body, type, token }: Input): Promise<Sent> => {
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name]!))
    const search = query.length === 0 ? '' : `?${new URLSearchParams(query)}`
    const headers: Record<string, string> = {}
    if (type !== undefined) headers['content-type'] = type
    // A key of its own: each request is a new operation.
    for (const { name, in: place } of operation.parameters ?? []) if (place === 'header') headers[name] = randomUUID()
    if (token) headers.authorization = `Bearer ${token}`
    const response = await fetch(url + filled + search, { method, headers, ...(body === undefined ? {} : { body }) })
    const text = await response.text()
    const request = `${method} ${filled}${search} ${type ?? ''} ${body ?? ''}`.slice(0, 2000)
    return { operation, request, status: response.status, type: response.headers.get('content-type') ?? '', text }
  }
}

/** Asserts that the response's status is documented and that its body fits the documented schema. */
function holds(document: OpenApiDocument, { operation, request, status, type, text }: Sent): void {
  const given = operation.responses[status]
  assert.ok(given, `${request}\n${status} is not documented: ${text}`)
  const response = ('$ref' in given ? at(document, given.$ref) : given) as Exclude<typeof given, { $ref: string }>
  if (response.content === undefined) return
  const media = response.content[type.split(';')[0]!]
  assert.ok(media, `${request}\n${status} came as ${type}`)
  if (!type.startsWith('application/json')) return
  assert.deepEqual(faultsOf(document, media.schema, JSON.parse(text)), [], `${request}\n${status} ${text}`)
}
