import type { Literal } from './literal.ts'

/** The values that a zod schema takes, as far as its source shows. Plain data. */
export interface PayloadSchema {
  type: 'string' | 'number' | 'boolean' | 'null' | 'array' | 'object' | 'unknown'
  optional: boolean
  nullable: boolean
  /** The fields of an object, when they are known. */
  fields?: Array<{ key: string; schema: PayloadSchema }>
  /** True when the schema lets other keys than `fields` pass. */
  loose?: boolean
}

/** A place where a payload literal does not fit its schema. */
export interface Misfit {
  line: number
  message: string
}

/** Compares keys and primitive types alone. What the source does not say for certain fits. @param path place within the payload */
export function misfits(payload: Literal, schema: PayloadSchema, path = ''): Misfit[] {
  if (payload.type === 'choice') return payload.options.flatMap((option) => misfits(option, schema, path))
  if (payload.type === 'unknown' || schema.type === 'unknown') return []
  const place = path === '' ? 'the payload' : `'${path}'`
  if (payload.type === 'undefined') {
    return schema.optional ? [] : [{ line: payload.line, message: `lacks the required key ${place}` }]
  }
  if (payload.type === 'null' && schema.nullable) return []
  if (payload.type !== schema.type) {
    return [{ line: payload.line, message: `has ${article(payload.type)} for ${place}, not ${article(schema.type)}` }]
  }
  if (payload.type !== 'object' || !schema.fields) return []
  const found: Misfit[] = []
  const given = new Map(payload.entries.map(({ key, value }) => [key, value]))
  for (const { key, schema: field } of schema.fields) {
    const value = given.get(key)
    const inner = path === '' ? key : `${path}.${key}`
    if (value) found.push(...misfits(value, field, inner))
    else if (!field.optional && !payload.open) {
      found.push({ line: payload.line, message: `lacks the required key '${inner}'` })
    }
  }
  if (schema.loose) return found
  const known = new Set(schema.fields.map(({ key }) => key))
  for (const [key, value] of given) {
    if (known.has(key)) continue
    found.push({ line: value.line, message: `has the unknown key '${path === '' ? key : `${path}.${key}`}'` })
  }
  return found
}

function article(type: string): string {
  if (type === 'null') return 'null'
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}
