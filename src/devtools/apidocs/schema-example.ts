import type { JsonSchema } from '../../contracts/registry.ts'
import { resolved } from '../../core/schemas/json-schema.ts'
import { isPlainObject } from '../../core/schemas/standard-schema.ts'

const MAX_DEPTH = 16
/** From this depth on, only required properties are included. */
const SHALLOW_DEPTH = 3
const MAX_TEXT_CHARS = 256
const MAX_ITEMS = 8

const OF_FORMAT: Readonly<Record<string, string>> = {
  date: '2030-01-31',
  'date-time': '2030-01-31T12:00:00.000Z',
  duration: 'P1D',
  email: 'ada@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  time: '12:00:00',
  uri: 'https://example.com/',
  uuid: '3f0c1d1e-5b7a-4c2d-9e8f-0a1b2c3d4e5f',
}

/** An example value, or undefined when there is none. The value itself is never `undefined`, which is not JSON. */
type Example = { value: unknown } | undefined

/**
 * A value that the schema accepts; undefined when the schema does not say enough.
 * A wrong example is worse than none, so where a pattern or code decides, there is no example.
 * @param name name of the value, which serves as the example of a text
 * @param root the schema from which references are resolved
 */
export function exampleOf(schema: JsonSchema, name: string, root = schema): Example {
  return new Examples(root).of(schema, name, 0)
}

class Examples {
  readonly #root: JsonSchema

  constructor(root: JsonSchema) {
    this.#root = root
  }

  of(given: unknown, name: string, depth: number): Example {
    const schema = isPlainObject(given) ? resolved(this.#root, given) : undefined
    if (schema === undefined || depth > MAX_DEPTH) return undefined
    if (Array.isArray(schema.examples) && schema.examples.length > 0) return { value: schema.examples[0] }
    if ('default' in schema) return { value: schema.default }
    if ('const' in schema) return { value: schema.const }
    if (Array.isArray(schema.enum)) return schema.enum.length > 0 ? { value: schema.enum[0] } : undefined
    if ('not' in schema || 'if' in schema) return undefined
    if (Array.isArray(schema.allOf)) return this.#ofAll(schema, schema.allOf, name, depth)
    const choice = schema.anyOf ?? schema.oneOf
    if (Array.isArray(choice)) return firstOf(choice, (item) => this.of(item, name, depth + 1))
    const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
    switch (type) {
      case 'string':
        return textOf(schema, name)
      case 'integer':
      case 'number':
        return numberOf(schema, type)
      case 'boolean':
        return { value: true }
      case 'null':
        return { value: null }
      case 'array':
        return this.#array(schema, name, depth)
      case 'object':
        return this.#object(schema, depth)
    }
    return undefined
  }

  /** For objects only: examples of two texts cannot be combined. */
  #ofAll(schema: JsonSchema, parts: readonly unknown[], name: string, depth: number): Example {
    const { allOf: _, ...own } = schema
    const all = 'type' in own || 'properties' in own ? [...parts, own] : parts
    const value = {}
    for (const part of all) {
      const example = this.of(part, name, depth + 1)
      if (!isPlainObject(example?.value)) return undefined
      Object.assign(value, example.value)
    }
    return { value }
  }

  #array(schema: JsonSchema, name: string, depth: number): Example {
    const least = Number(schema.minItems ?? 0)
    if (least > MAX_ITEMS || schema.contains !== undefined) return undefined
    if (Array.isArray(schema.prefixItems)) {
      const items = schema.prefixItems.map((item) => this.of(item, name, depth + 1))
      return items.some((item) => item === undefined) ? undefined : { value: items.map((item) => item!.value) }
    }
    const item = least === 0 && depth >= SHALLOW_DEPTH ? undefined : this.of(schema.items, name, depth + 1)
    const isOneTooMany = schema.maxItems === 0
    if (item === undefined || isOneTooMany) return least === 0 ? { value: [] } : undefined
    if (least > 1 && schema.uniqueItems === true) return undefined
    return { value: Array.from({ length: Math.max(least, 1) }, () => item.value) }
  }

  #object(schema: JsonSchema, depth: number): Example {
    const required = new Set(Array.isArray(schema.required) ? schema.required : [])
    const value: Record<string, unknown> = {}
    for (const [key, property] of Object.entries((schema.properties as JsonSchema | undefined) ?? {})) {
      if (depth >= SHALLOW_DEPTH && !required.has(key)) continue
      const example = this.of(property, key, depth + 1)
      if (example !== undefined) value[key] = example.value
      else if (required.has(key)) return undefined
      required.delete(key)
    }
    return required.size > 0 || Number(schema.minProperties ?? 0) > Object.keys(value).length ? undefined : { value }
  }
}

function firstOf<T>(items: readonly T[], read: (item: T) => Example): Example {
  for (const item of items) {
    const example = read(item)
    if (example !== undefined) return example
  }
  return undefined
}

function textOf({ format, pattern, minLength, maxLength }: JsonSchema, name: string): Example {
  const least = Number(minLength ?? 0)
  const most = Number(maxLength ?? MAX_TEXT_CHARS)
  let text = typeof format === 'string' ? OF_FORMAT[format] : /^\w+$/.test(name) ? name : 'text'
  // An unknown format may require anything.
  if (text === undefined || least > MAX_TEXT_CHARS) return undefined
  if (format === undefined) text = text.repeat(Math.ceil(Math.max(least, 1) / text.length)).slice(0, Math.max(most, 0))
  if (text.length < least || text.length > most) return undefined
  if (typeof pattern === 'string' && !matches(pattern, text)) return undefined
  return { value: text }
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    // The pattern is written for another regular expression dialect, so it cannot be checked here.
    return false
  }
}

/** The first of some likely numbers that is within all bounds. */
function numberOf(schema: JsonSchema, type: 'integer' | 'number'): Example {
  const step = Number(schema.multipleOf ?? (type === 'integer' ? 1 : 0))
  const least = Math.max(Number(schema.minimum ?? -Infinity), Number(schema.exclusiveMinimum ?? -Infinity))
  const most = Math.min(Number(schema.maximum ?? Infinity), Number(schema.exclusiveMaximum ?? Infinity))
  const stepUp = Math.ceil(least / step) * step
  const likely = [1, step, stepUp, stepUp + step, least, (least + most) / 2, most, Math.floor(most / step) * step, 0]
  const value = likely.find(
    (number) =>
      Number.isFinite(number) &&
      number >= least &&
      number <= most &&
      number !== schema.exclusiveMinimum &&
      number !== schema.exclusiveMaximum &&
      (step === 0 || number % step === 0) &&
      (type === 'number' || Number.isInteger(number)),
  )
  return value === undefined ? undefined : { value }
}
