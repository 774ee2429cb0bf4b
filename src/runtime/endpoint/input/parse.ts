// JSON and forms, read strictly.
import { isUtf8 } from 'node:buffer'
import { HeddleError } from '../../../core/errors/catalogue.ts'

/** Keys that could reach a prototype: refused with 400 wherever a client sends them. */
export function isForbiddenKey(key: string): boolean {
  return key === '__proto__' || key === 'constructor' || key === 'prototype'
}

/** Keys that only the runtime sets: dropped when a client sends them. */
export function isReservedKey(key: string): boolean {
  return key.startsWith('_auth') || key.startsWith('_files')
}

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

/** Levels of arrays and objects at most. With some thousand levels, Node's own functions throw at unexpected places. */
const JSON_MAX_DEPTH = 64

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
