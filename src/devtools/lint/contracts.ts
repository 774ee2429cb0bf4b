// The contracts of events, loaded as the runtime loads them, and payloads held against them.
import path from 'node:path'
import type { JsonSchema } from '../../contracts/registry.ts'
import { type EventContract, loadEventContracts } from '../../core/schemas/event-contracts.ts'
import { jsonSchemaOf } from '../../core/schemas/json-schema.ts'
import { isPlainObject } from '../../core/schemas/standard-schema.ts'
import type { Literal } from './texts.ts'

export interface Contract extends Pick<EventContract, 'file' | 'domain'> {
  /** What the payload may be, as far as the schema describes itself. */
  schema: JsonSchema
}

export interface Contracts {
  /** By event: the first one when there are several. */
  byEvent: Map<string, Contract>
  faults: Array<{ file: string; message: string }>
}

/** Runs the `events.ts` of all domains. */
export async function loadContracts(domainsDirs: readonly string[]): Promise<Contracts> {
  const { contracts, faults } = await loadEventContracts(domainsDirs)
  const byEvent = new Map<string, Contract>()
  for (const [event, { file, domain, schema }] of contracts)
    byEvent.set(event, { file, domain, schema: jsonSchemaOf(schema, 'literal') })
  // A folder that cannot be read has a finding of its own.
  return { byEvent, faults: faults.filter(({ file }) => path.basename(file) === 'events.ts') }
}

/** A place where a payload literal does not fit its schema. */
export interface Misfit {
  line: number
  message: string
}

/** Compares keys and primitive types alone. What the source does not say for certain fits. @param path place within the payload */
export function misfits(payload: Literal, schema: JsonSchema, path = ''): Misfit[] {
  if (payload.type === 'choice') return payload.options.flatMap((option) => misfits(option, schema, path))
  const { line } = payload
  const place = path === '' ? 'the payload' : `'${path}'`
  const types = typesOf(schema)
  if (payload.type === 'unknown' || types === undefined) return []
  if (payload.type === 'undefined') return [{ line, message: `lacks the required key ${place}` }]
  if (!types.includes(payload.type)) {
    const wanted = types.length > 1 ? types.filter((type) => type !== 'null') : types
    return [{ line, message: `has ${article(payload.type)} for ${place}, not ${wanted.map(article).join(' or ')}` }]
  }
  const [shape, ...others] = variants(schema).filter((each) => typesOf(each)?.includes('object'))
  if (payload.type !== 'object' || !isPlainObject(shape?.properties) || others.length > 0) return []
  const { properties: fields, required = [], additionalProperties = false } = shape
  const keyAt = (key: string) => (path === '' ? key : `${path}.${key}`)
  const found: Misfit[] = []
  const given = new Map(payload.entries.map(({ key, value }) => [key, value]))
  for (const [key, field] of Object.entries(fields)) {
    const value = given.get(key)
    const isRequired = (required as string[]).includes(key)
    if (value?.type === 'undefined' && !isRequired) continue
    if (value) found.push(...misfits(value, field as JsonSchema, keyAt(key)))
    else if (isRequired && !payload.open) found.push({ line, message: `lacks the required key '${keyAt(key)}'` })
  }
  for (const [key, value] of additionalProperties === false ? given : []) {
    if (!Object.hasOwn(fields, key)) found.push({ line: value.line, message: `has the unknown key '${keyAt(key)}'` })
  }
  return found
}

/** The types of literals that the schema may take; undefined when that cannot be told. */
function typesOf(schema: JsonSchema): string[] | undefined {
  const { type, const: only, enum: values } = schema
  if ('$ref' in schema || 'allOf' in schema || 'not' in schema) return undefined
  const all = variants(schema)
  if (all[0] !== schema) {
    const each = all.map(typesOf)
    return each.includes(undefined) ? undefined : [...new Set(each.flatMap((types) => types!))]
  }
  const listed = 'const' in schema ? [only] : (values as unknown[] | undefined)
  if (listed) return [...new Set(listed.map((value) => (value === null ? 'null' : typeof value)))]
  return type === undefined
    ? undefined
    : [type as string | string[]].flat().map((each) => (each === 'integer' ? 'number' : each))
}

function variants(schema: JsonSchema): JsonSchema[] {
  return ((schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined) ?? [schema]
}

function article(type: string): string {
  if (type === 'null') return 'null'
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}
