// What a header may hold.
import { HeddleError } from '../errors/catalogue.ts'

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not reach a header
const UNSAFE_VALUE = /[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/

/**
 * Without the blanks and tabs around it. `trim` takes away what is no blank in a header, too: U+2000 or U+00A0, as a browser sends it in
 * the name of a cookie, would make it another's. Source: RFC 9110, section 5.6.3.
 */
export function withoutBlanks(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

export function isToken(name: string): boolean {
  return TOKEN.test(name)
}

/** True where `name: value` lines, each ended by CR LF, have one of this name. */
export const hasLine = (head: string, name: string): boolean =>
  head.startsWith(`${name}: `) || head.includes(`\n${name}: `)

/** The lines without the first one of this name. */
export function withoutLine(head: string, name: string): string {
  const at = `\r\n${head}`.indexOf(`\r\n${name}: `)
  return at < 0 ? head : head.slice(0, at) + head.slice(head.indexOf('\r\n', at) + 2)
}

/** The name of a header in lower case. @throws HTTP_HEADER_INVALID for a name that is not a token */
export function headerName(name: string): string {
  const lower = String(name).toLowerCase()
  if (!isToken(lower)) throw new HeddleError('HTTP_HEADER_INVALID', `${JSON.stringify(name)} is no header name`)
  return lower
}

/** The value of a header as text. @throws HTTP_HEADER_INVALID for one with control characters or beyond Latin-1 */
export function headerText(name: string, value: string): string {
  const text = String(value)
  if (!UNSAFE_VALUE.test(text)) return text
  throw new HeddleError(
    'HTTP_HEADER_INVALID',
    `The value of the header ${name} has characters that a header cannot hold`,
  )
}
