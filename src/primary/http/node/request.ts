// The head of a request that node:http has read, as the listener asks for it.
import type { IncomingMessage } from 'node:http'
import { errorReply, type Reply } from '../../../runtime/endpoint/reply.ts'
import type { ClientRequest } from '../library.ts'

/** As many as uWebSockets.js takes. */
const HEADERS_MAX_COUNT = 100
const ABSOLUTE = /^https?:\/\/([^/?#]+)(.*)$/i
const BEYOND_ASCII = /[\x80-\xff]/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const NO_TARGET = /[\x00-\x20\x7f#]/

/** The head of a request that node:http has read. */
export class NodeRequest implements ClientRequest {
  /** Names and values in turn. */
  readonly #headers: string[]
  readonly #method: string
  readonly #path: string
  readonly #query: string
  /** Why the runtime does not serve it; null when it may. */
  readonly fault: Reply | null

  constructor({ method = '', url = '', rawHeaders, httpVersion }: IncomingMessage) {
    this.#method = method
    const headers = rawHeaders.slice()
    for (let n = 0; n < headers.length; n += 2) {
      headers[n] = headers[n]!.toLowerCase()
      headers[n + 1] = utf8Of(headers[n + 1]!)
    }
    this.#headers = headers
    const absolute = url.startsWith('/') ? null : ABSOLUTE.exec(url)
    // The host of the target counts, whatever `Host` says (RFC 9112, section 3.2.2).
    if (absolute !== null) this.#setHost(absolute[1]!)
    const target = utf8Of(absolute === null ? url : absolute[2]!.replace(/^(?!\/)/, '/'))
    const queryAt = target.indexOf('?')
    this.#path = queryAt < 0 ? target : target.slice(0, queryAt)
    this.#query = queryAt < 0 ? '' : target.slice(queryAt + 1)
    this.fault = this.#faultOf(httpVersion, target)
  }

  #faultOf(httpVersion: string, target: string): Reply | null {
    if (httpVersion !== '1.1') return errorReply('HTTP_VERSION')
    if (this.#headers.length > 2 * HEADERS_MAX_COUNT) return errorReply('HTTP_HEADERS_TOO_LARGE')
    if (!target.startsWith('/') || NO_TARGET.test(target))
      return errorReply('HTTP_BAD_REQUEST', 'The target of the request is not valid')
    if (this.getHeader('host') === '') return errorReply('HTTP_BAD_REQUEST', 'The header Host is missing')
    return null
  }

  #setHost(host: string): void {
    for (let n = 0; n < this.#headers.length; n += 2) if (this.#headers[n] === 'host') this.#headers[n + 1] = host
  }

  getCaseSensitiveMethod(): string {
    return this.#method
  }

  getUrl(): string {
    return this.#path
  }

  getQuery(): string {
    return this.#query
  }

  getHeader(name: string): string {
    for (let n = 0; n < this.#headers.length; n += 2) if (this.#headers[n] === name) return this.#headers[n + 1]!
    return ''
  }

  forEach(each: (name: string, value: string) => void): void {
    for (let n = 0; n < this.#headers.length; n += 2) each(this.#headers[n]!, this.#headers[n + 1]!)
  }
}

/** node:http gives each byte as a character. */
function utf8Of(text: string): string {
  return BEYOND_ASCII.test(text) ? Buffer.from(text, 'latin1').toString() : text
}
