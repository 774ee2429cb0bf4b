import type { JsonSchema } from '../../contracts/route-info.ts'
import { isPlainObject } from '../collections/plain-object.ts'

/** Keywords that hold one schema, a list of them, or one for each name. */
const ONE = new Set(
  'additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems unevaluatedProperties'.split(
    ' ',
  ),
)
const LIST = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const NAMED = new Set(['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'])
/** They would move the place that references start from. */
const LEFT_OUT = new Set(['$schema', '$id', '$anchor', '$dynamicAnchor', '$dynamicRef', '~standard'])

/**
 * The schema for a place within a larger document: references to its own root lead to that place, those to elsewhere are left out.
 * @param place JSON pointer of where it will stand, for example `#/components/schemas/User`
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

/** Whether something in the schema refers to its root: it needs a place of its own then. */
export function refersToItself(schema: JsonSchema): boolean {
  return JSON.stringify(schema).includes('"$ref":"#')
}

/** What a local reference of a schema leads to; undefined when there is nothing. */
export function resolved(root: JsonSchema, schema: JsonSchema): JsonSchema | undefined {
  let found: unknown = schema
  // A reference may lead to a reference, and in the end to itself.
  for (let hops = 0; hops < 32 && isPlainObject(found) && typeof found.$ref === 'string'; hops++) {
    found = atPointer(root, found.$ref)
  }
  return isPlainObject(found) && found.$ref === undefined ? found : undefined
}

/** Source: RFC 6901, section 6. */
function atPointer(root: unknown, pointer: string): unknown {
  if (!pointer.startsWith('#')) return undefined
  let found = root
  for (const part of pointer.slice(1).split('/').slice(1)) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    found =
      typeof found === 'object' && found !== null && Object.hasOwn(found, key) ? Reflect.get(found, key) : undefined
  }
  return found
}
