// A request of the listener, and the layouts of requests and answers in a ring.
import type { Operator } from '../../contracts/http-request.ts'
import type { TraceContext } from '../../contracts/tracing.ts'
import { type FrameBuffer, INLINE_MAX_BYTES, utf8MaxBytes } from './frames.ts'

/** Methods of routes; a method's number is its index. HEAD is answered for every GET. */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const

/** Follows each header's name and value: the one character that a header line cannot hold. */
export const HEADER_SEPARATOR = '\r'

/**
 * One request. Its text is ids + ip + path + query + trace + headers, in this order, cut by their lengths (in UTF-16 units): one copy from thread
 * to thread instead of one per field. Nothing of it is split or decoded before it is read.
 */
export class RequestFrame {
  readonly routeNumber: number
  readonly methodNumber: number
  readonly idsLength: number
  readonly ipLength: number
  readonly pathLength: number
  readonly queryLength: number
  readonly traceLength: number
  readonly text: string
  body: Uint8Array | null
  /** Set by `writeRequest` when the text has characters beyond ASCII. */
  declare isBeyondAscii: boolean | undefined
  /** The client speaks TLS to a trusted proxy. Undefined where no such proxy says so. */
  declare isHttps: boolean | undefined
  /** Sender of a request under `/system`. Only within the primary: it is not sent to a lane. */
  declare operator: Operator | undefined
  /** Claims of its token or session, once read. Undefined on most routes, which do not pay for it. */
  declare claims: object | undefined
  /** Id of the user that `http.identify` returned. Undefined on most routes, too. */
  declare userId: string | undefined
  #requestId: string | undefined
  #headers: Record<string, string> | undefined

  constructor(
    routeNumber: number,
    methodNumber: number,
    idsLength: number,
    ipLength: number,
    pathLength: number,
    queryLength: number,
    traceLength: number,
    text: string,
    body: Uint8Array | null,
  ) {
    this.routeNumber = routeNumber
    this.methodNumber = methodNumber
    this.idsLength = idsLength
    this.ipLength = ipLength
    this.pathLength = pathLength
    this.queryLength = queryLength
    this.traceLength = traceLength
    this.text = text
    this.body = body
  }

  get method(): string {
    return METHODS[this.methodNumber]!
  }

  get requestId(): string {
    if (this.#requestId === undefined) {
      const { ids } = this
      const blank = ids.indexOf(' ')
      this.#requestId = blank < 0 ? ids : ids.slice(0, blank)
    }
    return this.#requestId
  }

  /** Unique id within the runtime: the request id, unless the client has chosen that. */
  get key(): string {
    const { ids } = this
    return ids.slice(ids.indexOf(' ') + 1)
  }

  /** The request id; if the client has chosen it, followed by a blank and the key. */
  get ids(): string {
    return this.text.slice(0, this.idsLength)
  }

  /** The client's address; empty where nothing reads it. */
  get ip(): string {
    return this.text.slice(this.idsLength, this.idsLength + this.ipLength)
  }

  /** Raw, not decoded. */
  get path(): string {
    const from = this.idsLength + this.ipLength
    return this.text.slice(from, from + this.pathLength)
  }

  get hasQuery(): boolean {
    return this.queryLength > 0
  }

  /** Raw, without the question mark. */
  get query(): string {
    const from = this.idsLength + this.ipLength + this.pathLength
    return this.text.slice(from, from + this.queryLength)
  }

  /** The span of the request (src/core/causality/context.ts); empty while tracing is off. */
  get trace(): TraceContext {
    return this.text.slice(this.#headersFrom - this.traceLength, this.#headersFrom)
  }

  get #headersFrom(): number {
    return this.idsLength + this.ipLength + this.pathLength + this.queryLength + this.traceLength
  }

  /** Names and values, each with HEADER_SEPARATOR behind it. */
  get headersText(): string {
    return this.text.slice(this.#headersFrom)
  }

  get headers(): Record<string, string> {
    this.#headers ??= this.#splitHeaders()
    return this.#headers
  }

  /** Returns one header, undefined if there is none. An object of all of them takes six times as long. */
  header(name: string): string | undefined {
    if (this.#headers !== undefined) return this.#headers[name]
    const { text } = this
    let found: string | undefined
    for (let at = this.#headersFrom; at < text.length; ) {
      const nameEnd = text.indexOf(HEADER_SEPARATOR, at)
      const valueEnd = text.indexOf(HEADER_SEPARATOR, nameEnd + 1)
      // The text was cut off: going on would loop forever.
      if (valueEnd < at) break
      if (nameEnd - at === name.length && text.startsWith(name, at))
        found = together(name, found, text.slice(nameEnd + 1, valueEnd))
      at = valueEnd + 1
    }
    return found
  }

  #splitHeaders(): Record<string, string> {
    const parts = this.headersText.split(HEADER_SEPARATOR)
    const headers: Record<string, string> = Object.create(null)
    for (let n = 0; n + 1 < parts.length; n += 2) {
      const name = parts[n]!
      headers[name] = together(name, headers[name], parts[n + 1]!)
    }
    return headers
  }
}

/** Joins the values of a repeated header. Cookies are joined by `;` (RFC 6265, section 5.4). */
const together = (name: string, before: string | undefined, value: string): string =>
  before === undefined ? value : before + (name === 'cookie' ? '; ' : ', ') + value

const REQUEST_FIXED_BYTES = 24
/** Above the numbers of the route and the method. */
const HTTPS_FLAG = 1 << 24
/** Maximum number of routes: their numbers must fit into a frame. */
export const ROUTES_MAX = 65_535

export function requestMaxBytes({ text, body }: RequestFrame): number {
  const bodyBytes = body === null ? 0 : body.byteLength
  const maxBytes = REQUEST_FIXED_BYTES + utf8MaxBytes(text) + bodyBytes
  return maxBytes <= INLINE_MAX_BYTES ? maxBytes : REQUEST_FIXED_BYTES + Buffer.byteLength(text) + bodyBytes
}

export function writeRequest(to: FrameBuffer, at: number, frame: RequestFrame): number {
  const word = at >> 2
  const { bytes, words } = to
  const textBytes = bytes.utf8Write(frame.text, at + REQUEST_FIXED_BYTES)
  if (textBytes !== frame.text.length) frame.isBeyondAscii = true
  words[word] = frame.routeNumber | (frame.methodNumber << 16) | (frame.isHttps === true ? HTTPS_FLAG : 0)
  words[word + 1] = frame.idsLength | (frame.ipLength << 16)
  words[word + 2] = frame.pathLength
  words[word + 3] = frame.queryLength | (frame.traceLength << 16)
  words[word + 4] = textBytes
  if (frame.body === null) {
    words[word + 5] = -1
    return REQUEST_FIXED_BYTES + textBytes
  }
  words[word + 5] = frame.body.byteLength
  bytes.set(frame.body, at + REQUEST_FIXED_BYTES + textBytes)
  return REQUEST_FIXED_BYTES + textBytes + frame.body.byteLength
}

/** The reading side of `writeRequest`. The body is copied: the frame's memory is reused. */
export function readRequest(from: FrameBuffer, at: number): RequestFrame {
  const word = at >> 2
  const { bytes, words } = from
  const textAt = at + REQUEST_FIXED_BYTES
  const bodyAt = textAt + words[word + 4]!
  const bodyBytes = words[word + 5]!
  const frame = new RequestFrame(
    words[word]! & 0xffff,
    (words[word]! >>> 16) & 0xff,
    words[word + 1]! & 0xffff,
    words[word + 1]! >>> 16,
    words[word + 2]!,
    words[word + 3]! & 0xffff,
    words[word + 3]! >>> 16,
    bytes.utf8Slice(textAt, bodyAt),
    bodyBytes < 0 ? null : Buffer.from(bytes.subarray(bodyAt, bodyAt + bodyBytes)),
  )
  if ((words[word]! & HTTPS_FLAG) !== 0) frame.isHttps = true
  return frame
}

// RESPONSE: the status, the length of the head in bytes, then the head (`name: value` lines) and the body.
// RESPONSE_HEAD: the same, with the length of the body that follows in place of a body (-1 where nobody knows it); none before events.

export const RESPONSE_FIXED_BYTES = 8
const NO_BODY_FLAG = 1 << 16
const STATUS_MASK = NO_BODY_FLAG - 1

export function writeResponse(
  to: FrameBuffer,
  at: number,
  status: number,
  head: string,
  body: string | Uint8Array | null,
): number {
  const word = at >> 2
  const { bytes, words } = to
  let end = at + RESPONSE_FIXED_BYTES
  const headBytes = head === '' ? 0 : bytes.utf8Write(head, end)
  words[word] = body === null ? status | NO_BODY_FLAG : status
  words[word + 1] = headBytes
  end += headBytes
  if (typeof body === 'string') end += bytes.utf8Write(body, end)
  else if (body !== null) {
    bytes.set(body, end)
    end += body.byteLength
  }
  return end - at
}

// The reading side. One function per field, not one object per response: there is a response for every request.

export const readResponseStatus = ({ words }: FrameBuffer, at: number): number => words[at >> 2]! & STATUS_MASK

export function readResponseHead({ bytes, words }: FrameBuffer, at: number): string {
  const headBytes = words[(at >> 2) + 1]!
  const headAt = at + RESPONSE_FIXED_BYTES
  return headBytes === 0 ? '' : bytes.utf8Slice(headAt, headAt + headBytes)
}

/** Null for a response without a body. The memory is the frame's. */
export function readResponseBody({ bytes, words }: FrameBuffer, at: number, length: number): Uint8Array | null {
  const word = at >> 2
  if ((words[word]! & NO_BODY_FLAG) !== 0) return null
  const bodyAt = at + RESPONSE_FIXED_BYTES + words[word + 1]!
  // Not `subarray`: a Buffer's is twice as slow as a plain view.
  return new Uint8Array(bytes.buffer, bytes.byteOffset + bodyAt, at + length - bodyAt)
}
