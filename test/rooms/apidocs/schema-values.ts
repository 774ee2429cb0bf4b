import type { JsonSchema } from '#heddle'
import { Random } from '../../support/random.ts'
import { at } from './schema-check.ts'

const MAX_DEPTH = 4
const LETTERS = [...'abcXYZ019 _-.äß漢😀"\\<>&%/']

/** Generates valid and invalid values for a schema, the same ones for the same seed. */
export class SchemaValues extends Random {
  readonly #root: object

  constructor(root: object, seed: number) {
    super(seed)
    this.#root = root
  }

  /** @returns undefined when it cannot make a value, for example for a pattern */
  valid(given: unknown, depth = 0): unknown {
    const schema = this.#resolved(given)
    if ('const' in schema) return schema.const
    if (Array.isArray(schema.enum)) return this.pick(schema.enum)
    const choices = schema.anyOf ?? schema.oneOf
    // The last option of a recursive union ends the recursion.
    if (Array.isArray(choices)) return this.valid(depth > MAX_DEPTH ? choices.at(-1) : this.pick(choices), depth + 1)
    switch (schema.type) {
      case 'string':
        return this.#textOf(schema)
      case 'integer':
      case 'number':
        return this.#number(schema)
      case 'boolean':
        return this.pick([true, false])
      case 'null':
        return null
      case 'array': {
        const least = Number(schema.minItems ?? 0)
        const length = depth > MAX_DEPTH ? least : least + this.below(Number(schema.maxItems ?? least + 2) - least + 1)
        return Array.from({ length }, () => this.valid(schema.items, depth + 1))
      }
      case 'object':
        return this.#object(schema, depth)
    }
    return this.pick([null, 'any', 1, [], { any: true }])
  }

  /** A value of another type, out of bounds, or without a required property; undefined for a schema that accepts everything. */
  invalid(given: unknown): unknown {
    const schema = this.#resolved(given)
    const wrong: unknown[] = []
    const { type, minimum, maximum, minLength, maxLength, minItems, maxItems, required, properties } = schema
    if (type === 'object' || schema.anyOf || schema.oneOf) wrong.push([], ['text'])
    else if (type !== undefined) wrong.push({ wrong: true })
    if (type === 'integer' && schema.multipleOf === undefined) wrong.push(1.5)
    if (type === 'string' && (minLength === undefined || Number(minLength) > 0)) wrong.push(12)
    if (Number(minLength) > 0) wrong.push('')
    if (maxLength !== undefined) wrong.push('x'.repeat(Number(maxLength) + 1))
    if (minimum !== undefined) wrong.push(Number(minimum) - 1)
    if (maximum !== undefined) wrong.push(Number(maximum) + 1)
    if (schema.exclusiveMinimum !== undefined) wrong.push(Number(schema.exclusiveMinimum))
    if (Array.isArray(schema.enum) || 'const' in schema) wrong.push('none of these')
    if (Number(minItems) > 0) wrong.push([])
    if (maxItems !== undefined) wrong.push(Array.from({ length: Number(maxItems) + 1 }, () => this.valid(schema.items)))
    if (Array.isArray(required) && required.length > 0) {
      const whole = this.valid(schema) as Record<string, unknown>
      const { [this.pick(required) as string]: _, ...rest } = whole
      const [key, part] = this.pick(Object.entries(properties as JsonSchema))
      const wrongPart = this.invalid(part)
      wrong.push(rest)
      if (wrongPart !== undefined) wrong.push({ ...whole, [key]: wrongPart })
    }
    return wrong.length === 0 ? undefined : this.pick(wrong)
  }

  #resolved(given: unknown): JsonSchema {
    let found = (given ?? {}) as JsonSchema
    while (typeof found.$ref === 'string') found = at(this.#root, found.$ref) as JsonSchema
    return found
  }

  #object({ properties = {}, required = [] }: JsonSchema, depth: number): unknown {
    const value: Record<string, unknown> = {}
    for (const [key, property] of Object.entries(properties as JsonSchema)) {
      const isNeeded = (required as string[]).includes(key)
      if (isNeeded || (depth <= MAX_DEPTH && this.below(2) === 0)) value[key] = this.valid(property, depth + 1)
    }
    return value
  }

  #textOf({ format, pattern, minLength, maxLength }: JsonSchema): unknown {
    if (format === 'date-time') return new Date(this.below(2 ** 31) * 1000).toISOString()
    if (format === 'email') return `a${this.below(1e6)}@example.com`
    if (typeof pattern === 'string') {
      // The patterns of the fixtures are few, so one of these texts fits.
      const known = ['12345', '-7', 'plain'].find((text) => new RegExp(pattern, 'u').test(text))
      if (known !== undefined && known.length >= Number(minLength ?? 0)) return known
      return pattern.includes('Cc') ? 'x'.repeat(Number(minLength ?? 1)) : undefined
    }
    const least = Number(minLength ?? 0)
    const length = least + this.below(Math.min(Number(maxLength ?? least + 12), least + 12) - least + 1)
    let text = ''
    // Characters count, not their halves, in JSON Schema as in zod.
    while ([...text].length < length) text += this.pick(LETTERS)
    // A character of two UTF-16 units may exceed the limit.
    return [...text].length > Number(maxLength ?? Infinity) ? 'y'.repeat(length) : text
  }

  #number({ type, minimum, maximum, exclusiveMinimum, multipleOf }: JsonSchema): number {
    const step = Number(multipleOf ?? 1)
    const least = Math.max(
      Number(minimum ?? -1000),
      exclusiveMinimum === undefined ? -Infinity : Number(exclusiveMinimum) + step,
    )
    const from = Math.max(least, -1000)
    const most = Math.min(Number(maximum ?? 1000), 1000)
    const value = from + step * this.below(Math.floor((most - from) / step) + 1)
    return type === 'integer' ? Math.ceil(value) : value
  }
}
