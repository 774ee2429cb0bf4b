import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { JsonSchema } from '#heddle'

const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  validateSchema: false,
  logger: false,
  formats: { 'date-time': (text: string) => !Number.isNaN(Date.parse(text)) },
})
const validators = new WeakMap<object, ValidateFunction>()

/** The faults of a value by a schema of a document. */
export function faultsOf(root: object, schema: unknown, value: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return schema === false ? ['it must not be there'] : []
  let validate = validators.get(schema)
  if (validate === undefined) {
    // References of the schema begin at the root of the document.
    validate = ajv.compile({ ...root, ...(schema as JsonSchema) })
    validators.set(schema, validate)
  }
  validate(value)
  return (validate.errors ?? []).map(
    ({ instancePath, message }) => `${instancePath} ${message}: ${JSON.stringify(value)}`,
  )
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
