import type { JsonSchema } from '../contracts/route-info.ts'
import type { StandardSchemaV1 } from '../contracts/standard-schema.ts'
import { isSchemaObject } from './json-schema.ts'

/** What a schema takes, or what comes out of it. */
export type Side = 'input' | 'output'

/** A schema whose text is longer than this is not shown. */
const SCHEMA_MAX_CHARS = 65_536

/**
 * What a schema that describes itself has beside `validate`.
 * Source: Standard JSON Schema specification v1, https://standardschema.dev/json-schema
 */
type Converter = (options: { target: string; libraryOptions?: Record<string, unknown> }) => unknown

/**
 * The JSON Schema of a Standard Schema, or one that takes anything and says why.
 * No schema library is loaded for it: libraries bring the conversion along. Never throws: what cannot be shown must not keep a plugin from booting.
 */
export function jsonSchemaOf(schema: StandardSchemaV1, side: Side): JsonSchema {
  const standard = schema['~standard'] as StandardSchemaV1['~standard'] & {
    jsonSchema?: Partial<Record<Side, Converter>>
  }
  try {
    const convert = standard.jsonSchema?.[side]
    if (typeof convert !== 'function')
      return unknown(`Checked by a schema of ${standard.vendor}, which does not describe itself.`)
    const options =
      standard.vendor === 'zod' ? { unrepresentable: 'any', override: describeUnrepresentable(side) } : undefined
    const converted = convert({ target: 'draft-2020-12', ...(options && { libraryOptions: options }) })
    const text = JSON.stringify(converted)
    if (text.length > SCHEMA_MAX_CHARS) return unknown('Checked by a schema that is too large to be shown.')
    const plain: unknown = JSON.parse(text)
    if (!isSchemaObject(plain)) return unknown('Checked by a schema that does not describe itself.')
    delete plain.$schema
    return plain
  } catch (error) {
    return unknown(`Checked by a schema that cannot be shown: ${firstLine(error)}`)
  }
}

function unknown(description: string): JsonSchema {
  return { description }
}

function firstLine(error: unknown): string {
  return String((error as Error | undefined)?.message ?? error)
    .split('\n', 1)[0]!
    .slice(0, 200)
}

interface ZodNode {
  zodSchema: { _zod: { def: { type: string; coerce?: boolean } } }
  jsonSchema: JsonSchema
}

/** For what JSON has no type for zod says nothing; this says how it travels. */
function describeUnrepresentable(side: Side): (node: ZodNode) => void {
  return ({ zodSchema, jsonSchema }) => {
    const { type, coerce } = zodSchema._zod.def
    // An input that is not coerced must be a Date already: no JSON is.
    if (type === 'date' && (side === 'output' || coerce))
      Object.assign(jsonSchema, { type: 'string', format: 'date-time' })
    else if (type === 'bigint' && coerce) Object.assign(jsonSchema, { type: 'string', pattern: '^-?\\d+$' })
    else if (type === 'transform' || type === 'custom') jsonSchema.description ??= 'Made or checked by code.'
  }
}
