// Checks of what `state` is given.
import { HeddleError } from '../../core/errors/catalogue.ts'
import { isInstance } from '../../core/errors/description.ts'

/**
 * Checks of keys, namespaces, times to live and values, for every implementation of `state`. They run in the thread of the caller.
 * So all implementations refuse the same input with the same codes.
 */

const MAX_KEY_CHARS = 512
const MAX_TTL_MS = 100 * 365 * 86_400_000
const DEFAULT_NAMESPACE = 'default'

/** @throws STATE_OPTIONS_INVALID unless it is a string of 1 to 512 characters of well-formed Unicode */
export function checkKey(key: unknown): string {
  return checkName('key', key)
}

/** @throws STATE_OPTIONS_INVALID */
export function checkNamespace(options: unknown): string {
  if (options === undefined) return DEFAULT_NAMESPACE
  if (typeof options !== 'object' || options === null) throw invalid('options must be an object', options)
  const { namespace } = options as { namespace?: unknown }
  return namespace === undefined ? DEFAULT_NAMESPACE : checkName('namespace', namespace)
}

/**
 * Call it after `checkNamespace`, which checks that options are an object.
 * @returns the time to live in milliseconds, null for none
 */
export function checkTtl(options: { ttlMs?: unknown } | undefined): number | null {
  const ttlMs = options?.ttlMs
  if (ttlMs === undefined) return null
  if (Number.isSafeInteger(ttlMs) && Number(ttlMs) >= 1 && Number(ttlMs) <= MAX_TTL_MS) return Number(ttlMs)
  throw invalid(`ttlMs must be a whole number of milliseconds from 1 to ${MAX_TTL_MS}`, ttlMs)
}

/** @throws STATE_OPTIONS_INVALID unless it is a safe integer */
export function checkStep(by: unknown): number {
  if (Number.isSafeInteger(by)) return Number(by) + 0 // -0 becomes 0, as in JSON
  throw invalid('increment wants a safe integer', by)
}

/**
 * The JSON of a value. A store keeps this text, so no caller can change a stored value.
 * As always in JSON, properties that are undefined are left out and dates become strings.
 * @throws STATE_VALUE_INVALID for values that JSON cannot represent: undefined, functions, symbols, NaN, infinities, bigints, cycles
 */
export function toJson(value: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value, refuseLoss)
  } catch (error) {
    if (isInstance(error, HeddleError)) throw error
    // A cycle, a bigint, a toJSON that throws, or a value that is nested too deeply.
    throw new HeddleError('STATE_VALUE_INVALID', 'A state value must be JSON: it cannot be serialized', {
      cause: error,
    })
  }
  if (text === undefined) throw lossy('undefined')
  return text
}

/** The safe integer that a JSON text holds, undefined for anything else. */
export function integerIn(text: string): number | undefined {
  const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : undefined
}

export function notANumber(key: string): HeddleError {
  return new HeddleError(
    'STATE_NOT_A_NUMBER',
    `state.increment: the key ${JSON.stringify(key)} does not hold an integer`,
  )
}

export function outOfRange(key: string): HeddleError {
  return new HeddleError(
    'STATE_NOT_A_NUMBER',
    `state.increment: the key ${JSON.stringify(key)} would leave the range of safe integers`,
  )
}

function refuseLoss(this: unknown, _key: string, value: unknown): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') throw lossy(`a ${typeof value}`)
  if (typeof value === 'number' && !Number.isFinite(value)) throw lossy(String(value))
  if (value === undefined && Array.isArray(this)) throw lossy('undefined in an array')
  return value
}

function lossy(what: string): HeddleError {
  return new HeddleError('STATE_VALUE_INVALID', `A state value must be JSON, got ${what}`)
}

function checkName(what: string, name: unknown): string {
  if (typeof name !== 'string' || name.length < 1 || name.length > MAX_KEY_CHARS) {
    throw invalid(`${what} must be a string of 1 to ${MAX_KEY_CHARS} characters`, name)
  }
  // UTF-8 cannot encode half of a surrogate pair: two such keys would become one in a store of bytes.
  if (/\p{Surrogate}/u.test(name)) throw invalid(`${what} must be well-formed Unicode`, name)
  return name
}

function invalid(wanted: string, got: unknown): HeddleError {
  const shown =
    typeof got === 'string' ? `${got.length} characters` : typeof got === 'number' ? String(got) : typeof got
  return new HeddleError('STATE_OPTIONS_INVALID', `state: ${wanted}, got ${shown}`)
}
