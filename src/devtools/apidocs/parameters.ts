// What a request brings: parameters and body.

import type { JsonSchema, RouteInfo } from '../../contracts/registry.ts'
import { resolved } from '../../core/schemas/json-schema.ts'
import { isPlainObject } from '../../core/schemas/standard-schema.ts'
import { capital } from '../words.ts'
import type { Components, PathParameter } from './components.ts'
import { exampleOf } from './schema-example.ts'

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string
  schema: JsonSchema
  example?: unknown
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A new key, for example a UUID, for each new operation. The same key with the same request gets the same answer again, with ' +
    '`idempotency-replayed: true`, and nothing is done twice.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
  example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
} as const

export interface Property {
  schema: JsonSchema
  isRequired: boolean
}

/** The parameters of the path, of the query, and the header of a route that answers repetitions. */
export function parametersOf(
  { schemas, idempotency }: RouteInfo,
  id: string,
  path: readonly PathParameter[],
  components: Components,
): Parameter[] {
  const described = (parameter: Parameter, whole: JsonSchema | undefined, use: 'Params' | 'Query'): Parameter => {
    const { schema, name } = parameter
    const example = exampleOf(schema, name, whole)
    const { description = schema.description } = parameter
    return {
      ...parameter,
      ...(typeof description === 'string' ? { description } : {}),
      schema: whole === undefined ? schema : components.part(capital(id) + use, whole, schema),
      ...(example === undefined ? {} : { example: example.value }),
    }
  }
  const inPath = schemas.params === undefined ? undefined : propertiesOf(schemas.params)
  const found = path.map(({ name, key }): Parameter => {
    const isRest = key === '*'
    const schema = inPath?.get(key)?.schema ?? { type: 'string', ...(isRest ? {} : { minLength: 1 }) }
    const rest = { description: 'The rest of the path. A slash in it is written as `%2F`, or as it is.' }
    return described({ name, in: 'path', required: true, ...(isRest ? rest : {}), schema }, schemas.params, 'Params')
  })
  if (idempotency !== null) found.push({ ...IDEMPOTENCY_KEY, required: idempotency === 'required' })
  const { query } = schemas
  if (query === undefined) return found
  const inQuery = propertiesOf(query)
  if (inQuery === undefined) return [...found, anyQuery(query)]
  const named = [...inQuery].map(([name, { schema, isRequired }]) =>
    described({ name, in: 'query', required: isRequired, schema }, query, 'Query'),
  )
  return [...found, ...named]
}

function anyQuery({ description: said }: JsonSchema): Parameter {
  const description = typeof said === 'string' ? said : 'Any names and values.'
  return { name: 'query', in: 'query', required: false, description, schema: OPEN }
}

/** The properties of an object, also when its schema is composed of several; undefined when the schema does not show them. */
export function propertiesOf(root: JsonSchema): Map<string, Property> | undefined {
  const found = new Map<string, Property>()
  return collect(root, root, true, found, 0) ? found : undefined
}

function collect(
  root: JsonSchema,
  given: unknown,
  isCertain: boolean,
  found: Map<string, Property>,
  depth: number,
): boolean {
  const schema = isPlainObject(given) ? resolved(root, given) : undefined
  if (schema === undefined || depth > 8) return false
  const required = new Set(Array.isArray(schema.required) ? schema.required : [])
  const properties = isPlainObject(schema.properties) ? Object.entries(schema.properties) : []
  for (const [name, property] of properties) {
    if (isPlainObject(property) && !found.has(name)) {
      found.set(name, { schema: property, isRequired: isCertain && required.has(name) })
    }
  }
  let tells = schema.type === 'object' || properties.length > 0
  for (const part of asList(schema.allOf)) tells = collect(root, part, isCertain, found, depth + 1) || tells
  // A client may choose any of the alternatives, so no property is required by all of them.
  for (const part of [...asList(schema.anyOf), ...asList(schema.oneOf)]) {
    tells = collect(root, part, false, found, depth + 1) || tells
  }
  return tells
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export interface RequestBody {
  description?: string
  required: boolean
  content: Record<string, { schema?: JsonSchema; example?: unknown }>
}

const FORM = 'application/x-www-form-urlencoded'
const UPLOAD = 'multipart/form-data'
export const WITH_BODY = new Set(['POST', 'PUT', 'PATCH'])
const OPEN = { type: 'object', additionalProperties: true }

/** The body of a request; undefined for methods whose body is not read. */
export function requestBodyOf(
  { method, schemas, has_raw_body, streamed_body }: RouteInfo,
  id: string,
  components: Components,
): RequestBody | undefined {
  const { body } = schemas
  if (streamed_body === 'stream') return anyBytes('are read while they come')
  if (streamed_body === 'multipart') {
    const description = 'A form, whose parts are read while they come.'
    return { description, required: true, content: { [UPLOAD]: { schema: OPEN } } }
  }
  if (has_raw_body && WITH_BODY.has(method)) return anyBytes('the handler gets as they came')
  if (body === undefined) return WITH_BODY.has(method) ? anyBody() : undefined
  const schema = components.schema(`${capital(id)}Body`, body)
  const example = exampleOf(body, 'text')
  const media = { schema, ...(example === undefined ? {} : { example: example.value }) }
  const content: RequestBody['content'] = { 'application/json': media }
  if (isForm(body)) {
    content[FORM] = media
    content[UPLOAD] = media
  }
  return { required: needsBody(body), content }
}

const anyBytes = (how: string): RequestBody => ({
  description: `Bytes of any type, which ${how}.`,
  required: false,
  content: { '*/*': {} },
})

function anyBody(): RequestBody {
  const description =
    'Nothing is asked of it. The handler gets the fields of a JSON object or a form, and its files; anything else it gets as it is.'
  const content = {
    'application/json': { schema: {} },
    [FORM]: { schema: OPEN },
    [UPLOAD]: { schema: OPEN },
    'application/octet-stream': {},
  }
  return { description, required: false, content }
}

/** An empty body counts as an empty object. */
export function needsBody(root: JsonSchema): boolean {
  const schema = resolved(root, root)
  if (schema === undefined || schema.type !== 'object') return Object.keys(root).some((key) => key !== 'description')
  return Array.isArray(schema.required) && schema.required.length > 0
}

/** True when a form can hold a value for the schema, although all fields of a form are texts. */
export function isForm(root: JsonSchema): boolean {
  const schema = resolved(root, root)
  if (schema?.type !== 'object' || !isPlainObject(schema.properties)) return false
  return Object.values(schema.properties).every((property) => takesText(root, property))
}

function takesText(root: JsonSchema, given: unknown): boolean {
  const schema = isPlainObject(given) ? resolved(root, given) : undefined
  if (schema === undefined) return false
  const choice = schema.anyOf ?? schema.oneOf
  if (Array.isArray(choice)) return choice.some((item) => takesText(root, item))
  return schema.type === 'string'
}
