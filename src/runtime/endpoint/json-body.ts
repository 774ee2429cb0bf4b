import { isUtf8 } from 'node:buffer'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { isForbiddenKey } from './keys.ts'

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

/** Levels of arrays and objects at most. With some thousand levels, Node's own functions throw at unexpected places. */
export const JSON_MAX_DEPTH = 64

/** Parses a JSON body. @throws HTTP_BAD_REQUEST that says what is wrong, without the body's text */
export function parseJsonBody(bytes: Uint8Array): unknown {
  if (!isUtf8(bytes)) throw new HeddleError('HTTP_BAD_REQUEST', 'The body is not valid UTF-8')
  let value: unknown
  try {
    value = parseJson((bytes as Buffer).toString('utf8'))
  } catch {
    throw new HeddleError('HTTP_BAD_REQUEST', 'The body is not valid JSON')
  }
  check(value, 1)
  return value
}

function check(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return
  if (depth > JSON_MAX_DEPTH) {
    throw new HeddleError('HTTP_BAD_REQUEST', `The body is nested deeper than ${JSON_MAX_DEPTH} levels`)
  }
  if (Array.isArray(value)) {
    for (const item of value) check(item, depth + 1)
    return
  }
  for (const key of Object.keys(value)) {
    if (isForbiddenKey(key)) throw new HeddleError('HTTP_BAD_REQUEST', `The body has the forbidden key ${key}`)
    check((value as Record<string, unknown>)[key], depth + 1)
  }
}
