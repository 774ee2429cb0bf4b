import type { JsonSchema } from '#heddle'

/** The faults of a value by its schema, for the keywords that the documents of this project use. */
export function faultsOf(root: object, schema: unknown, value: unknown, path = '$'): string[] {
  if (schema === true || schema === undefined) return []
  if (schema === false) return [`${path} must not be there`]
  const { $ref, ...own } = schema as JsonSchema
  const faults = typeof $ref === 'string' ? faultsOf(root, at(root, $ref), value, path) : []
  const fault = (what: string): void => void faults.push(`${path} ${what}: ${JSON.stringify(value)}`)
  const inner = (part: unknown, item = value, place = path) => faultsOf(root, part, item, place)
  const fits = (part: unknown) => inner(part).length === 0

  if (own.type !== undefined && ![own.type].flat().some((type) => isOfType(value, type))) fault(`is no ${own.type}`)
  if ('const' in own && !isSame(own.const, value)) fault(`is not ${JSON.stringify(own.const)}`)
  if (Array.isArray(own.enum) && !own.enum.some((item) => isSame(item, value))) fault('is none of the enum')
  if (own.not !== undefined && fits(own.not)) fault('is what it must not be')
  for (const part of listOf(own.allOf)) faults.push(...inner(part))
  if (own.anyOf !== undefined && !listOf(own.anyOf).some(fits)) fault('fits none of anyOf')
  if (own.oneOf !== undefined && listOf(own.oneOf).filter(fits).length !== 1) fault('does not fit one of oneOf')
  if (typeof value === 'number') {
    if (value < Number(own.minimum ?? -Infinity) || value <= Number(own.exclusiveMinimum ?? -Infinity))
      fault('is too small')
    if (value > Number(own.maximum ?? Infinity) || value >= Number(own.exclusiveMaximum ?? Infinity))
      fault('is too large')
    if (own.multipleOf !== undefined && value % Number(own.multipleOf) !== 0) fault('is no multiple')
  }
  if (typeof value === 'string') {
    if (value.length < Number(own.minLength ?? 0) || value.length > Number(own.maxLength ?? Infinity))
      fault('has a wrong length')
    if (typeof own.pattern === 'string' && !new RegExp(own.pattern, 'u').test(value))
      fault('does not match its pattern')
    if (own.format === 'date-time' && Number.isNaN(Date.parse(value))) fault('is no date and time')
  }
  if (Array.isArray(value)) {
    if (value.length < Number(own.minItems ?? 0) || value.length > Number(own.maxItems ?? Infinity))
      fault('has a wrong number of items')
    for (const [n, item] of value.entries()) faults.push(...inner(own.items, item, `${path}[${n}]`))
  } else if (isOfType(value, 'object')) {
    const given = value as Record<string, unknown>
    const properties = (own.properties ?? {}) as Record<string, unknown>
    for (const key of listOf(own.required)) if (!Object.hasOwn(given, key as string)) fault(`lacks ${key}`)
    for (const [key, item] of Object.entries(given)) {
      const part = Object.hasOwn(properties, key) ? properties[key] : own.additionalProperties
      faults.push(...inner(part, item, `${path}.${key}`))
    }
  }
  return faults
}

/** @throws when the reference points to nothing */
export function at(root: object, pointer: string): unknown {
  let found: unknown = root
  for (const part of pointer.slice(1).split('/').slice(1)) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key))
      throw new Error(`${pointer} leads nowhere`)
    found = Reflect.get(found, key)
  }
  return found
}

/** Every local reference of a document. */
export function referencesOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) =>
    key === '$ref' && typeof item === 'string' ? [item] : referencesOf(item),
  )
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === 'array') return Array.isArray(value)
  if (type === 'null') return value === null
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
