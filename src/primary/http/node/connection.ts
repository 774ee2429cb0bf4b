// One connection of a client, and the answer to bytes that cannot be read.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorCode } from '../../../core/errors/catalogue.ts'
import { errorReply, JSON_TYPE, type Reply } from '../../../runtime/endpoint/reply.ts'
import { statusLine } from '../exchange.ts'
import { makeRequestId } from '../request-head.ts'
import { NodeResponse, type ResponseOwner } from './response.ts'

/** A client has this long to read why its connection is closed, milliseconds. */
const LINGER_MS = 1_000

/**
 * One connection. As with uWebSockets.js its requests are served one at a time: with a request that comes before the answer to the one
 * before it, that answer is the last.
 */
export class ClientConnection implements ResponseOwner {
  readonly #socket: Socket
  #current: NodeResponse | null = null
  #isOver = false
  isUpgraded = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** No further request is served. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Nothing is being answered, or the answer is written and the client does not read it. */
  get isStuck(): boolean {
    return this.#current === null || this.#current.isStuck
  }

  /** Begins an answer; null when the request is not served. */
  open(req: IncomingMessage, res: ServerResponse): NodeResponse | null {
    if (this.#current !== null) this.#isOver = true
    if (this.#current?.isUnderWay) this.#current.close()
    if (this.#isOver) return null
    this.#current = new NodeResponse(req, res, this)
    return this.#current
  }

  isLast(): void {
    this.#isOver = true
  }

  responseDone(response: NodeResponse): void {
    if (this.#current !== response) return
    this.#current = null
    if (this.#isOver) this.#socket.destroySoon()
  }

  /** What came cannot be read. Behind a request that is being answered it gets no answer: that one is the last. */
  fail(reply: Reply): void {
    if (this.#isOver) return
    this.#isOver = true
    const current = this.#current
    if (current === null) return this.#end(reply)
    if (current.isRequestComplete) return
    // It is the body of this request.
    if (current.hasBegun) return this.#socket.destroySoon()
    current.abandon()
    this.#end(reply)
  }

  #end(reply: Reply): void {
    this.#socket.end(pageOf(reply))
    // Closed at once, it would be reset where the client still sends, and the answer be lost.
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }
}

/** What node:http says of bytes that it cannot read. Source: its `clientError` event, and llhttp's errors. */
const CODES: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'HTTP_HEADERS_TOO_LARGE',
  HPE_INVALID_VERSION: 'HTTP_VERSION',
  ERR_HTTP_REQUEST_TIMEOUT: 'HTTP_REQUEST_TIMEOUT',
}

/** Errors of llhttp that say that the end of a request is not certain, with the words of `HeadScan.framingFault`. */
const FRAMING: Record<string, string> = {
  HPE_INVALID_CONTENT_LENGTH: 'content-length is no number',
  HPE_UNEXPECTED_CONTENT_LENGTH: 'more than one content-length',
  HPE_INVALID_TRANSFER_ENCODING: 'unknown transfer-encoding',
}

/** Why the end of a request is not certain; null when it is something else that cannot be read. */
export function framingFaultOf({ code = '', message }: NodeJS.ErrnoException): string | null {
  if (/content-length.*transfer-encoding|transfer-encoding.*content-length/i.test(message))
    return 'content-length with transfer-encoding'
  return FRAMING[code] ?? null
}

/** The answer to a request that node:http cannot read; null when nobody is there to read it. */
export function replyToFault(error: NodeJS.ErrnoException): Reply | null {
  const { code = '', message } = error
  const framingFault = framingFaultOf(error)
  if (framingFault !== null) return errorReply('HTTP_BAD_REQUEST', `The request is ambiguous: ${framingFault}`)
  // The client has gone in the middle of a request.
  if (code === 'HPE_INVALID_EOF_STATE') return null
  // llhttp calls a line that does not end in CR LF a wrong version, too.
  const known = message.includes('CRLF') ? undefined : CODES[code]
  if (known === 'HTTP_REQUEST_TIMEOUT') return errorReply(known, 'The request did not arrive in time')
  if (known !== undefined) return errorReply(known)
  // The parser's messages name what it expected, and nothing of what came.
  if (code.startsWith('HPE_')) return errorReply('HTTP_BAD_REQUEST', `Malformed request: ${detailOf(message)}`)
  return null
}

/** `Parse Error: Expected HTTP/` without the part that they all have. */
function detailOf(message: string): string {
  const detail = message.replace(/^Parse Error:?\s*/, '')
  return detail === '' ? 'it is not HTTP/1.1' : detail
}

/** A whole answer as bytes, for a connection that has no request that could be answered. */
function pageOf({ status, head, body }: Reply): string {
  const text = body as string
  return (
    `HTTP/1.1 ${statusLine(status)}\r\nx-content-type-options: nosniff\r\nx-request-id: ${makeRequestId()}\r\n${head}` +
    `content-type: ${JSON_TYPE}\r\nconnection: close\r\ndate: ${new Date().toUTCString()}\r\n` +
    `content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  )
}
