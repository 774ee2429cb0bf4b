// One connection of a client: its answers, which node:http writes, and the answer to bytes that cannot be read.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorCode } from '../../../core/errors/catalogue.ts'
import { steadyMs } from '../../../core/schedule/clock.ts'
import { errorReply, JSON_TYPE, type Reply } from '../../../runtime/endpoint/reply.ts'
import { statusLine } from '../exchange.ts'
import type { ClientResponse, SocketListener, SocketUserData } from '../library.ts'
import { makeRequestId } from '../request-head.ts'

/** A client has this long to read why its connection is closed, milliseconds. */
const LINGER_MS = 1_000

/**
 * One connection. As with uWebSockets.js its requests are served one at a time: with a request that comes before the answer to the one
 * before it, that answer is the last.
 */
export class ClientConnection {
  readonly #socket: Socket
  #current: NodeResponse | null = null
  /** No further request is served. */
  isOver = false
  isUpgraded = false
  /** Since when it waits for its next request, by `steadyMs`; 0: it waits for its first one, or is being answered. */
  idleSinceMs = 0
  #answered: IncomingMessage | null = null

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Nothing is being answered, or the answer is written and the client does not read it. */
  get isStuck(): boolean {
    return this.#current === null || this.#current.isStuck
  }

  /** The body of the request that it has answered still comes. */
  get isReceiving(): boolean {
    return this.#answered?.complete === false
  }

  /** Begins an answer; null when the request is not served. */
  open(req: IncomingMessage, res: ServerResponse): NodeResponse | null {
    if (this.#current !== null) this.isOver = true
    if (this.#current?.isUnderWay) this.#current.close()
    if (this.isOver) return null
    this.idleSinceMs = 0
    this.#answered = null
    this.#current = new NodeResponse(req, res, this)
    return this.#current
  }

  /** The answer has left, or the connection is gone. */
  responseDone(response: NodeResponse): void {
    if (this.#current !== response) return
    this.#current = null
    this.#answered = response.req
    this.idleSinceMs = steadyMs()
    if (this.isOver) this.#socket.destroySoon()
  }

  /** What came cannot be read. Behind a request that is being answered it gets no answer: that one is the last. */
  fail(reply: Reply): void {
    if (this.isOver) return
    this.isOver = true
    const current = this.#current
    if (current === null) return this.#end(reply)
    if (current.req.complete) return
    // It is the body of this request.
    if (current.res.headersSent) return this.#socket.destroySoon()
    current.abandon()
    this.#end(reply)
  }

  #end(reply: Reply): void {
    this.#socket.end(pageOf(reply))
    // Closed at once, it would be reset where the client still sends, and the answer be lost.
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }
}

/** A longer body is written as it is. */
const ONE_PIECE_MAX_BYTES = 4_096
const NO_BYTES = Buffer.alloc(0)
const BEYOND_ASCII = /[\x80-\uffff]/

/** A request that may become a WebSocket: what `upgrade` of its response wants. */
export interface NodeHandshake {
  /** @param head names and values in turn */
  accept(socket: SocketListener, protocol: string, head: readonly string[]): void
}

/** An answer written through node:http, which keeps it in order with those before it. */
export class NodeResponse implements ClientResponse {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly #connection: ClientConnection
  #status = 200
  /** Names and values in turn. */
  readonly #head: string[] = []
  /** The client sends its body when it is told to (`Expect: 100-continue`). */
  isExpecting = false
  #isPaused = false
  #onAborted: (() => void) | null = null
  #onWritable: ((offset: number) => boolean) | null = null
  /** Of a body of known length; -1 of another. */
  #totalBytes = -1
  /** Bytes of it that have left. */
  #flushedBytes = 0
  /** Bytes of it that are written and have not. */
  #waitingBytes = 0
  /** Something waits for the client to read. */
  #isBlocked = false
  /** The last byte was written, or there will be none. */
  #isEnded = false

  constructor(req: IncomingMessage, res: ServerResponse, connection: ClientConnection) {
    this.req = req
    this.res = res
    this.#connection = connection
    res.on('finish', () => connection.responseDone(this))
    res.on('close', () => {
      this.abandon()
      connection.responseDone(this)
    })
  }

  /** A stream, of which nobody knows when it ends. */
  get isUnderWay(): boolean {
    return this.res.headersSent && !this.#isEnded && this.#totalBytes < 0
  }

  /** The answer is written, and its client does not read it. */
  get isStuck(): boolean {
    return this.#isEnded && !this.res.writableFinished
  }

  /** No answer can be given any more. */
  abandon(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#onAborted?.()
  }

  onAborted(callback: () => void): void {
    this.#onAborted = callback
  }

  onData(callback: (chunk: ArrayBuffer, isLast: boolean) => void): void {
    const { 'content-length': length } = this.req.headers
    let leftBytes = length === undefined ? Number.POSITIVE_INFINITY : Number(length)
    let isOver = false
    this.req.on('data', (chunk: Buffer) => {
      leftBytes -= chunk.byteLength
      isOver = leftBytes === 0
      callback(chunk.buffer.slice(chunk.byteOffset, chunk.byteOffset + chunk.byteLength) as ArrayBuffer, isOver)
    })
    this.req.on('end', () => isOver || callback(new ArrayBuffer(0), true))
    if (this.isExpecting) setImmediate(() => this.#isPaused || this.#tellToSend())
  }

  pause(): void {
    this.#isPaused = true
    this.req.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#tellToSend()
    this.req.resume()
  }

  #tellToSend(): void {
    if (!this.isExpecting || this.#isEnded || this.res.headersSent) return
    this.isExpecting = false
    this.res.writeContinue()
  }

  onWritable(callback: (offset: number) => boolean): void {
    this.#onWritable = callback
  }

  cork(write: () => void): void {
    write()
  }

  writeStatus(line: string): this {
    this.#status = Number(line.slice(0, 3))
    return this
  }

  writeHeader(name: string, value: string): this {
    let lineEnd = value.indexOf('\r\n')
    this.#head.push(name, latin1Of(lineEnd < 0 ? value : value.slice(0, lineEnd)))
    while (lineEnd >= 0) {
      const start = lineEnd + 2
      const colonAt = value.indexOf(': ', start)
      lineEnd = value.indexOf('\r\n', start)
      const line = lineEnd < 0 ? value.slice(colonAt + 2) : value.slice(colonAt + 2, lineEnd)
      this.#head.push(value.slice(start, colonAt), latin1Of(line))
    }
    return this
  }

  write(chunk: Uint8Array): boolean {
    if (!this.res.headersSent) {
      // A stream that nobody waited for would keep the connection open.
      if (this.#connection.isOver) {
        this.close()
        return false
      }
      this.#writeHead(false)
    }
    return this.#send(Buffer.from(chunk))
  }

  tryEnd(piece: Uint8Array, totalBytes: number): [isAccepted: boolean, isComplete: boolean] {
    if (this.#isBlocked) return [false, false]
    if (!this.res.headersSent) {
      this.#totalBytes = totalBytes
      this.#head.push('content-length', String(totalBytes))
      this.#writeHead(false)
    }
    const copy = Buffer.from(piece)
    if (!this.#send(copy)) {
      this.#waitingBytes = copy.byteLength
      return [false, false]
    }
    return [true, this.#flushed(copy.byteLength)]
  }

  /** Bytes of a body of known length have left. @returns true when they were the last */
  #flushed(bytes: number): boolean {
    this.#flushedBytes += bytes
    if (this.#flushedBytes !== this.#totalBytes) return false
    this.#isEnded = true
    this.res.end()
    return true
  }

  /** False when not all of it is with the kernel: `onWritable` is told when it is. */
  #send(bytes: Buffer): boolean {
    this.res.write(bytes, this.#sent)
    // node:http holds it back until the end of the turn, so that what a client cannot take would not show.
    this.req.socket.uncork()
    this.#isBlocked = this.req.socket.writableLength > 0
    return !this.#isBlocked
  }

  readonly #sent = (error?: Error | null): void => {
    if (error || this.#isEnded || !this.#isBlocked || this.req.socket.writableLength > 0) return
    this.#isBlocked = false
    this.#flushed(this.#waitingBytes)
    this.#waitingBytes = 0
    this.#onWritable?.(this.#flushedBytes)
  }

  getWriteOffset(): number {
    return this.#flushedBytes
  }

  end(body?: string | Uint8Array, close = false): void {
    const bytes = body === undefined ? NO_BYTES : bytesOf(body)
    const isWhole = !this.res.headersSent
    if (isWhole) {
      this.#head.push('content-length', String(bytes.byteLength))
      this.#writeHead(close)
    }
    this.#isEnded = true
    if (bytes.byteLength === 0) this.res.end()
    // As a text of bytes it goes with the head in one piece, which the kernel takes at less cost than two.
    else if (isWhole && bytes.byteLength <= ONE_PIECE_MAX_BYTES) this.res.end(bytes.toString('latin1'), 'latin1')
    // It is lent for the call.
    else this.res.end(typeof body === 'string' ? bytes : Buffer.from(bytes))
  }

  endWithoutBody(): void {
    this.#writeHead(this.#saysClose)
    this.#isEnded = true
    this.res.end()
  }

  close(): void {
    this.abandon()
    this.req.socket.destroy()
  }

  get remoteAddress(): string {
    return addressOf(this.req.socket)
  }

  upgrade(userData: SocketUserData, _key: string, protocol: string, _extensions: string, context: object): void {
    this.#isEnded = true
    ;(context as NodeHandshake).accept(userData.socket, protocol, this.#head)
  }

  get #saysClose(): boolean {
    return this.#head.some((text, n) => n % 2 === 0 && text === 'connection' && this.#head[n + 1] === 'close')
  }

  #writeHead(close: boolean): void {
    // A client that was not told to send its body may send it all the same (RFC 9110, section 10.1.1).
    const isLast = close || this.isExpecting || this.#connection.isOver || !this.res.shouldKeepAlive
    // Else node:http would add `keep-alive` to each answer, which is the default.
    this.res.removeHeader('connection')
    if (isLast && !this.#saysClose) this.#head.push('connection', 'close')
    if (isLast) this.#connection.isOver = true
    this.res.writeHead(this.#status, this.#head)
  }
}

/** Of the client; empty when it is gone. */
export function addressOf({ remoteAddress = '' }: Socket): string {
  return remoteAddress.replace(/^::ffff:(?=\d+\.)/, '')
}

/** node:http writes each character as a byte. */
function latin1Of(text: string): string {
  return BEYOND_ASCII.test(text) ? Buffer.from(text).toString('latin1') : text
}

/** Not copied where they are bytes. */
function bytesOf(body: string | Uint8Array): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
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
