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

/**
 * Parses a JSON body: exactly, or not at all.
 * @param maxKeys HTTP_MAX_KEYS
 * @throws HTTP_BAD_REQUEST that says what is wrong, without the body's text; HTTP_BODY_TOO_LARGE for too many keys
 */
export function parseJsonBody(bytes: Uint8Array, maxKeys = Number.POSITIVE_INFINITY): unknown {
  if (!isUtf8(bytes)) throw new HeddleError('HTTP_BAD_REQUEST', 'The body is not valid UTF-8')
  const text = (bytes as Buffer).toString('utf8')
  // Before a parser makes objects of them.
  if (bytes.byteLength > maxKeys * KEY_MIN_BYTES && keysIn(text, maxKeys) > maxKeys)
    throw new HeddleError('HTTP_BODY_TOO_LARGE', `The body has more than ${maxKeys} keys`)
  let value: unknown
  try {
    value = parseJson(text)
  } catch {
    throw new HeddleError('HTTP_BAD_REQUEST', 'The body is not valid JSON')
  }
  check(value, 1)
  if (MAY_BE_INEXACT.test(text)) requireExactNumbers(text)
  return value
}

/** `"":1,` */
const KEY_MIN_BYTES = 5

/** The keys of JSON: colons that stand in no text. @param max one more is enough to know */
function keysIn(text: string, max: number): number {
  let keys = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = endOfText(text, at)
    else if (code === 0x3a && ++keys > max) return keys
  }
  return keys
}

/** Where the quote is that ends a text. */
function endOfText(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === 0x5c) backslashes++
    if (backslashes % 2 === 0) return at
  }
  return text.length
}

/** A number of up to 15 digits is in JavaScript what it is in JSON. Texts may look so, too. */
const MAY_BE_INEXACT = /\d[\d.]{15}|\d[eE][+-]?\d{3}/
const NUMBER = /-?\d[\d.eE+-]*/y
const SHOWN_MAX_CHARS = 40

function requireExactNumbers(text: string): void {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = endOfText(text, at)
    else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      NUMBER.lastIndex = at
      const number = NUMBER.exec(text)![0]
      at = NUMBER.lastIndex - 1
      // 15 digits, with sign and point, and no exponent.
      if ((number.length <= 15 && !/[eE]/.test(number)) || isExact(number)) continue
      const shown = number.length > SHOWN_MAX_CHARS ? `${number.slice(0, SHOWN_MAX_CHARS)}…` : number
      throw new HeddleError(
        'HTTP_BAD_REQUEST',
        `The body has the number ${shown}, which would lose digits: send it as text`,
      )
    }
  }
}

/** True where the number is how JavaScript itself would write it with as many digits. */
function isExact(number: string): boolean {
  const value = Number(number)
  // As most services write it.
  if (String(value) === number) return true
  const digits = digitsOf(number)
  if (!Number.isFinite(value)) return false
  if (value === 0) return digits === ''
  return digits.length <= 15 || (digits.length <= 100 && digitsOf(value.toPrecision(digits.length)) === digits)
}

/** Without sign, point, exponent, and zeros at both ends. A number may be as long as a body: no pattern may begin anew at each zero. */
function digitsOf(number: string): string {
  const digits = number.replace(/[eE].*$/, '').replace(/[-.]/g, '')
  let from = 0
  let to = digits.length
  while (digits[from] === '0') from++
  while (to > from && digits[to - 1] === '0') to--
  return digits.slice(from, to)
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
  // Bytes that are no UTF-8 were replaced when a query was read.
  if (what === 'query' && text.includes('\ufffd'))
    throw new HeddleError('HTTP_BAD_REQUEST', 'The query is not valid UTF-8')
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
    // Of a body of blanks alone it takes a third of what `replaceAll` does.
    return decodeURIComponent(text.includes('+') ? text.split('+').join(' ') : text)
  } catch {
    throw new HeddleError('HTTP_BAD_REQUEST', `The ${what} has invalid percent-encoding`)
  }
}
