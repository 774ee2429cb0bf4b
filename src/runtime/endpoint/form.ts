import { HeddleError } from '../../core/errors/catalogue.ts'
import { isForbiddenKey, isReservedKey } from './keys.ts'

/** Fields of a query or form at most. */
export const FORM_MAX_FIELDS = 1000

/**
 * Reads `application/x-www-form-urlencoded` text (URL standard, section 5.1, but strict: bad percent-encoding is an error).
 * A repeated key becomes an array.
 */
export function parseForm(text: string, into: Record<string, unknown>, what: 'query' | 'form body'): void {
  // Bytes that are no UTF-8 were replaced when the text was read.
  if (text.includes('\ufffd')) throw new HeddleError('HTTP_BAD_REQUEST', `The ${what} is not valid UTF-8`)
  let fields = 0
  const seen = new Set<string>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    if (++fields > FORM_MAX_FIELDS)
      throw new HeddleError('HTTP_BAD_REQUEST', `The ${what} has more than ${FORM_MAX_FIELDS} fields`)
    const equals = pair.indexOf('=')
    const key = decode(equals < 0 ? pair : pair.slice(0, equals), what)
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1), what)
    if (isForbiddenKey(key)) throw new HeddleError('HTTP_BAD_REQUEST', `The ${what} has the forbidden key ${key}`)
    if (isReservedKey(key)) continue
    if (!seen.has(key)) {
      seen.add(key)
      into[key] = value
    } else if (Array.isArray(into[key])) (into[key] as string[]).push(value)
    else into[key] = [into[key], value]
  }
}

function decode(text: string, what: string): string {
  try {
    return decodeURIComponent(text.includes('+') ? text.replaceAll('+', ' ') : text)
  } catch {
    throw new HeddleError('HTTP_BAD_REQUEST', `The ${what} has invalid percent-encoding`)
  }
}
