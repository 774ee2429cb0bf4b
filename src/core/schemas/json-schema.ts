// A schema as JSON Schema, placed and resolved, and the contract of a route as text.

import type { StandardSchemaV1 } from '../../contracts/common.ts'
import type { IdentityScheme } from '../../contracts/http.ts'
import type { BodyKind, EndpointOptions, ThrownAnswers } from '../../contracts/http-request.ts'
import type { JsonSchema, RouteSchemas, ThrownInfo } from '../../contracts/registry.ts'
import { headOf, messageOf } from '../errors/description.ts'
import { isPlainObject } from './standard-schema.ts'

/** The use of a schema: for requests and responses, for the payload of an event, or to hold a literal of a source against it. */
export type SchemaUse = 'http' | 'event' | 'literal'

interface ConversionRules {
  /** OpenAPI 3.1 builds on draft 2020-12. */
  target: 'draft-2020-12' | 'draft-07'
  /** A published payload may hold a Date, which becomes text in JSON. HTTP data is checked as JSON, where only a schema that coerces takes a date. */
  hasDates: boolean
  /** What coerces takes anything, whatever it says that it takes. */
  coercesAny: boolean
}

const RULES: Readonly<Record<SchemaUse, ConversionRules>> = {
  http: { target: 'draft-2020-12', hasDates: false, coercesAny: false },
  event: { target: 'draft-07', hasDates: true, coercesAny: false },
  literal: { target: 'draft-2020-12', hasDates: false, coercesAny: true },
}

/** A schema whose text is longer than this is not shown. */
const SCHEMA_MAX_CHARS = 65_536

/**
 * The conversion that a schema may offer beside `validate`.
 * Source: Standard JSON Schema specification v1, https://standardschema.dev/json-schema
 */
interface SelfDescription {
  input?: (options: { target: string; libraryOptions?: Record<string, unknown> }) => unknown
}

/**
 * The JSON Schema of the input of a Standard Schema, or one that accepts anything and says why. Responses and events are sent as they
 * were given, not as the schema's output, so the output is not described.
 * Loads no schema library, since libraries include the conversion. Never throws: a schema that cannot be shown must not keep a plugin from booting.
 */
export function jsonSchemaOf(schema: StandardSchemaV1, use: SchemaUse): JsonSchema {
  const { target } = RULES[use]
  const standard = schema['~standard'] as StandardSchemaV1['~standard'] & { jsonSchema?: SelfDescription }
  try {
    const convert = standard.jsonSchema?.input
    if (typeof convert !== 'function') {
      return unknown(`Checked by a schema of ${standard.vendor}, which does not describe itself.`)
    }
    const isZod = standard.vendor === 'zod'
    const libraryOptions = isZod ? { unrepresentable: 'any', override: describeUnrepresentable(RULES[use]) } : undefined
    const converted = convert({ target, ...(libraryOptions && { libraryOptions }) })
    const text = JSON.stringify(converted)
    if (text.length > SCHEMA_MAX_CHARS) return unknown('Checked by a schema that is too large to be shown.')
    const plain: unknown = JSON.parse(text)
    if (!isPlainObject(plain)) return unknown('Checked by a schema that does not describe itself.')
    delete plain.$schema
    return plain
  } catch (error) {
    return unknown(`Checked by a schema that cannot be shown: ${headOf(messageOf(error)).slice(0, 200)}`)
  }
}

function unknown(description: string): JsonSchema {
  return { description }
}

interface ZodNode {
  zodSchema: { _zod: { def: { type: string; coerce?: boolean } } }
  jsonSchema: JsonSchema
}

/** zod does not describe types that JSON lacks. This says how their values are sent. */
function describeUnrepresentable({ hasDates, coercesAny }: ConversionRules): (node: ZodNode) => void {
  return ({ zodSchema, jsonSchema }) => {
    const { type, coerce } = zodSchema._zod.def
    if (coerce && coercesAny) delete jsonSchema.type
    else if (type === 'date' && (hasDates || coerce)) Object.assign(jsonSchema, { type: 'string', format: 'date-time' })
    else if (type === 'bigint' && coerce) Object.assign(jsonSchema, { type: 'string', pattern: '^-?\\d+$' })
    else if (type === 'transform' || type === 'custom') jsonSchema.description ??= 'Made or checked by code.'
  }
}

/** Keywords that hold one schema, a list of schemas, or a schema for each name. */
const ONE = new Set(
  'additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems unevaluatedProperties'.split(
    ' ',
  ),
)
const LIST = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const NAMED = new Set(['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'])
/** These keywords would change the place from which references are resolved. */
const LEFT_OUT = new Set(['$schema', '$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '~standard'])

/**
 * The schema for a place within a larger document: its references to its own root point to that place, other references are left out.
 * @param place JSON pointer of the place, for example `#/components/schemas/User`
 */
export function placed(schema: JsonSchema, place: string): JsonSchema {
  const result: JsonSchema = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (LEFT_OUT.has(keyword)) continue
    if (keyword === '$ref') {
      if (typeof value === 'string' && value.startsWith('#')) result.$ref = place + value.slice(1)
    } else if (LIST.has(keyword) && Array.isArray(value)) {
      result[keyword] = value.map((item) => placedValue(item, place))
    } else if (NAMED.has(keyword) && isPlainObject(value)) {
      result[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, placedValue(item, place)]),
      )
    } else {
      result[keyword] = ONE.has(keyword) ? placedValue(value, place) : value
    }
  }
  return result
}

function placedValue(value: unknown, place: string): unknown {
  return isPlainObject(value) ? placed(value, place) : value
}

/** True when a reference in the schema points to its root: the document must then hold the schema in a place of its own. */
export function refersToItself(schema: JsonSchema): boolean {
  return JSON.stringify(schema).includes('"$ref":"#')
}

/** The schema that a local reference points to; undefined when there is none. */
export function resolved(root: JsonSchema, schema: JsonSchema): JsonSchema | undefined {
  let found: unknown = schema
  // A reference may point to another reference, and so on, even back to itself.
  for (let hops = 0; hops < 32 && isPlainObject(found) && typeof found.$ref === 'string'; hops++) {
    found = atPointer(root, found.$ref)
  }
  return isPlainObject(found) && found.$ref === undefined ? found : undefined
}

/** What a reference like `#/$defs/name` points to; undefined where there is nothing. Source: RFC 6901, section 6. */
export function atPointer(root: unknown, pointer: string): unknown {
  if (!pointer.startsWith('#')) return undefined
  let found = root
  for (const part of pointer.slice(1).split('/').slice(1)) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, key) ? Reflect.get(found, key) : undefined
  }
  return found
}

/** How a client says who it is. */
interface RouteSecurity {
  readonly schemes: readonly IdentityScheme[]
  /** Strangers are refused. */
  readonly isRequired: boolean
}

/** The schemas of a route, and which headers it wants. */
interface RouteContract {
  hasAuth: boolean
  security?: RouteSecurity | undefined
  idempotency?: 'optional' | 'required' | undefined
  hasRawBody?: boolean | undefined
  streamedBody?: BodyKind
  status?: number
  schemas: RouteSchemas
  throws?: Record<string, ThrownInfo> | undefined
}

/**
 * The contract of a route as JSON text, for threads that do not have its schemas; undefined when it is empty.
 * Text is small and crosses threads unchanged; it is parsed only where documents are written.
 */
export function contractText(options: EndpointOptions, security?: RouteSecurity): string | undefined {
  const { authValidator, idempotency, rawBody, body, query, params, response, status, throws } = options
  if (!(authValidator || idempotency || rawBody || body || query || params || response || status || throws || security))
    return undefined
  const schemas: RouteSchemas = {}
  if (typeof body === 'object' || typeof body === 'function') schemas.body = jsonSchemaOf(body, 'http')
  if (query) schemas.query = jsonSchemaOf(query, 'http')
  if (params) schemas.params = jsonSchemaOf(params, 'http')
  if (response) schemas.response = jsonSchemaOf(response, 'http')
  const contract: RouteContract = { hasAuth: authValidator !== undefined, idempotency, hasRawBody: rawBody, schemas }
  if (security) contract.security = security
  if (typeof body === 'string') contract.streamedBody = body
  if (status) contract.status = status
  if (throws) contract.throws = thrownInfo(throws)
  return JSON.stringify(contract)
}

function thrownInfo(throws: ThrownAnswers): Record<string, ThrownInfo> {
  const infos: Record<string, ThrownInfo> = {}
  for (const [status, thrown] of Object.entries(throws)) {
    const { description, code, details } = typeof thrown === 'string' ? { description: thrown } : thrown
    infos[status] = {
      description: description ?? null,
      codes: code === undefined ? [] : [code].flat(),
      details: details === undefined ? null : jsonSchemaOf(details, 'http'),
    }
  }
  return infos
}

export function readContract(text: string | undefined): RouteContract {
  return text === undefined ? { hasAuth: false, schemas: {} } : (JSON.parse(text) as RouteContract)
}
