// The error that is an answer, and what a header may hold.
import { domainToASCII } from 'node:url'
import { HeddleError } from '../errors/catalogue.ts'

export interface HttpErrorOptions {
  /** A name for programs, for example `EMAIL_TAKEN`: it goes into the body. */
  code?: string
  /** Further information as JSON: it goes into the body. What is no JSON is left out. */
  details?: unknown
  /** Headers of the answer. They replace those that are set already. */
  headers?: Readonly<Record<string, string>>
  /** Why, for the log of an answer of 500 and above. The client does not see it. */
  cause?: unknown
}

/**
 * An answer that is thrown, from any depth of a handler, guard or hook: `{success: false, error: message, code?, details?}` with that status.
 * Below 500 it is no fault of the handler; from 500 on it is logged. Unlike those of other errors, its message is for the client.
 *
 * Headers and cookies that are set already stay. What a `context.commit` or transaction has done that it ends is rolled back.
 */
export class HttpError extends Error {
  override name = 'HttpError'
  /** From 400 to 599. */
  readonly status: number
  readonly code: string | undefined
  readonly details: unknown
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>

  /**
   * @param message for the client. Default: the standard phrase of the status, for example `Forbidden`
   * @throws HTTP_STATUS_INVALID outside of 400 to 599; HTTP_HEADER_INVALID
   */
  constructor(status: number, message?: string, { code, details, headers = {}, cause }: HttpErrorOptions = {}) {
    super(message ?? standardPhrase(status), cause === undefined ? undefined : { cause })
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new HeddleError(
        'HTTP_STATUS_INVALID',
        `The status of an HttpError is an integer from 400 to 599, not ${String(status)}`,
      )
    }
    this.status = status
    this.code = code
    this.details = details
    this.headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => {
        const lower = headerName(name)
        return [lower, headerText(lower, value)]
      }),
    )
  }
}

/** Loaded on demand: no lane needs anything else of Node's HTTP. */
function standardPhrase(status: number): string {
  return process.getBuiltinModule('node:http').STATUS_CODES[status] ?? 'Error'
}

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

/** What a URL cannot hold as it is, and a percent sign that begins no escape. Source: RFC 3986, appendix A. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: all but the tab are left for `headerText` to refuse
const NOT_IN_URLS = /[^\x00-\x08\x0a-\x1f!#$%&'()*+,\-./0-9:;=?@A-Z[\]_a-z~\x7f]+|%(?![0-9a-fA-F]{2})/g
const AUTHORITY = /^((?:https?|wss?):)?\/\/([^/?#\\]*)/i

/**
 * The value of a `location` header: a URL reference, with what a URL cannot hold percent-encoded.
 * @throws HTTP_HEADER_INVALID for half a surrogate pair, or a host that is none
 */
export function locationText(location: string): string {
  const text = String(location)
  if (text.search(NOT_IN_URLS) === -1) return text
  if (!text.isWellFormed()) throw invalidLocation('has half a surrogate pair')
  const encoded = (part: string): string => part.replace(NOT_IN_URLS, encodeURIComponent)
  const [start = '', scheme = '', authority = ''] = AUTHORITY.exec(text) ?? []
  const at = authority.lastIndexOf('@') + 1
  const [, host = '', port = ''] = /^(.*?)(:\d*)?$/s.exec(authority.slice(at))!
  // `domainToASCII` drops a tab, which makes it another host.
  const ascii = host.search(NOT_IN_URLS) === -1 ? host : host.includes('\t') ? '' : domainToASCII(host)
  if (ascii === '' && host !== '') throw invalidLocation('names a host that is none')
  return (start && `${scheme}//${encoded(authority.slice(0, at))}${ascii}${port}`) + encoded(text.slice(start.length))
}

const invalidLocation = (fault: string): HeddleError =>
  new HeddleError('HTTP_HEADER_INVALID', `The location of a redirect ${fault}`)
