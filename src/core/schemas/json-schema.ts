import type { JsonSchema } from '../../contracts/route-info.ts'
import { isPlainObject } from '../collections/plain-object.ts'

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
