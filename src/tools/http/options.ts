// The longest delay that Node's timers take.
const MAX_TIMEOUT_MS = 2_147_483_647

const SCHEMAS = ['body', 'query', 'params', 'response'] as const

/** Why an endpoint's options are not valid; undefined when they are. */
export function optionFault(options: unknown): string | undefined {
  if (typeof options !== 'object' || options === null) return 'the options must be an object'
  const { tags, authValidator, timeoutMs, summary, ...rest } = options as Record<string, unknown>
  if (tags !== undefined && !(Array.isArray(tags) && tags.every((tag) => typeof tag === 'string'))) {
    return 'tags must be an array of strings'
  }
  if (authValidator !== undefined && typeof authValidator !== 'function') return 'authValidator must be a function'
  if (summary !== undefined && typeof summary !== 'string') return 'summary must be a string'
  if (timeoutMs !== undefined) {
    const inRange = Number.isInteger(timeoutMs) && Number(timeoutMs) >= 1 && Number(timeoutMs) <= MAX_TIMEOUT_MS
    if (!inRange) return `timeoutMs must be a whole number of milliseconds from 1 to ${MAX_TIMEOUT_MS}`
  }
  const bad = SCHEMAS.find((key) => rest[key] !== undefined && !isStandardSchema(rest[key]))
  return bad && `${bad} must be a Standard Schema (an object or function with '~standard')`
}

function isStandardSchema(schema: unknown): boolean {
  if (schema === null || (typeof schema !== 'object' && typeof schema !== 'function')) return false
  const standard = (schema as { '~standard'?: { validate?: unknown } })['~standard']
  return typeof standard?.validate === 'function'
}
