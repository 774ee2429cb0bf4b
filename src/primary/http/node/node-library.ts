// node:http as the listener wants a library: its server, and the heads of requests that it has read.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { steadyMs } from '../../../core/schedule/clock.ts'
import { errorReply, JSON_TYPE, type Reply } from '../../../runtime/endpoint/reply.ts'
import { statusLine } from '../exchange.ts'
import type {
  ClientRequest,
  ClientResponse,
  HttpApp,
  HttpLibrary,
  RequestHandlers,
  SocketHandlers,
} from '../library.ts'
import { makeRequestId } from '../request-head.ts'
import { addressOf, ClientConnection, framingFaultOf, type NodeResponse, replyToFault } from './connection.ts'
import { Handshakes, hasKey, plainHead, wantsSocket } from './sockets.ts'

/** A client has this long to send the head of a request, milliseconds. */
const HEAD_TIMEOUT_MS = 10_000
/** A client that reads nothing of its answer, has asked for nothing yet, or has its answer and still sends the body, for this long is cut off, milliseconds. */
const STALL_MS = 12_000
const CHECK_MS = 1_000
/** More than the listener allows, which then answers itself. */
const HEAD_MAX_BYTES = 20 * 1024

/** node:http with the package `ws`, where uWebSockets.js has no binary. */
/** @param keepAliveMs how long a connection is kept that waits for its next request */
export function loadNode(keepAliveMs: number): HttpLibrary {
  return { name: 'node:http', isStrict: true, createApp: () => new NodeApp(keepAliveMs), refuse }
}

class NodeApp implements HttpApp {
  readonly #server: Server
  readonly #connections = new WeakMap<Socket, ClientConnection>()
  readonly #sockets = new Map<Socket, ClientConnection>()
  #handlers: RequestHandlers | null = null
  #handshakes: Handshakes | null = null
  readonly #keepAliveMs: number
  readonly #idleTimer: NodeJS.Timeout

  constructor(keepAliveMs: number) {
    this.#keepAliveMs = keepAliveMs
    this.#server = createServer({
      maxHeaderSize: HEAD_MAX_BYTES,
      // It would answer without a body.
      requireHostHeader: false,
      headersTimeout: HEAD_TIMEOUT_MS,
      // A timer of its own would have to be set with each request, and unset: all connections are looked at now and then.
      keepAliveTimeout: 0,
      // The listener watches bodies, and answers in its own words.
      requestTimeout: 0,
      connectionsCheckingInterval: CHECK_MS,
    })
    // None is dropped without a word: the listener counts them.
    this.#server.maxHeadersCount = 0
    this.#server.setTimeout(STALL_MS, (socket) => {
      const connection = this.#connections.get(socket)
      if (connection === undefined || (connection.isStuck && connection.idleSinceMs === 0)) socket.destroy()
    })
    this.#idleTimer = setInterval(() => this.#closeIdle(), Math.min(CHECK_MS, this.#keepAliveMs / 4)).unref()
    // Without a descriptor left a connection cannot be accepted.
    this.#server.on('error', () => {})
    this.#server.on('connection', (socket) => this.#onConnection(socket))
    this.#server.on('clientError', (error, socket) => this.#onFault(error, socket as Socket))
    this.#server.on('request', (req, res) => this.#onRequest(req, res))
    // Said when the body is wanted, so that a request which is refused by its head is not followed by its body.
    this.#server.on('checkContinue', (req, res) => this.#onRequest(req, res, true))
    // What the client expects beside `100-continue` is not ours to refuse (RFC 9110, section 10.1.1).
    this.#server.on('checkExpectation', (req, res) => this.#onRequest(req, res))
    this.#server.on('connect', (_, socket) =>
      this.#connections.get(socket as Socket)?.fail(errorReply('HTTP_BAD_REQUEST', 'This is no proxy')),
    )
  }

  #closeIdle(): void {
    const nowMs = steadyMs()
    for (const [socket, { idleSinceMs, isUpgraded, isReceiving }] of this.#sockets) {
      const allowedMs = isReceiving ? Math.min(STALL_MS, this.#keepAliveMs) : this.#keepAliveMs
      if (!isUpgraded && idleSinceMs !== 0 && nowMs - idleSinceMs >= allowedMs) socket.destroy()
    }
  }

  serve(handlers: RequestHandlers): void {
    this.#handlers = handlers
  }

  serveSockets(handlers: SocketHandlers): void {
    const handshakes = new Handshakes(handlers)
    this.#handshakes = handshakes
    this.#server.on('upgrade', (req, _, head) => {
      const connection = this.#connections.get(req.socket)!
      if (!wantsSocket(req)) return this.#readAgain(req, head)
      const begun = handshakes.begin(connection, req, head)
      if (begun === null) return void req.socket.destroy()
      const { response, context } = begun
      this.#dispatch(req, response, (request) => {
        if (hasKey(req)) handlers.onHandshake(response, request, context)
        else this.#handlers!.onRequest(response, request)
      })
    })
  }

  #readAgain(req: IncomingMessage, head: Buffer): void {
    req.socket.unshift(Buffer.concat([plainHead(req), head]))
    this.#server.emit('connection', req.socket)
  }

  #onConnection(socket: Socket): void {
    if (this.#connections.has(socket)) return
    const connection = new ClientConnection(socket)
    this.#connections.set(socket, connection)
    this.#sockets.set(socket, connection)
    const isTaken = this.#handlers!.onConnection(1, () => addressOf(socket))
    socket.on('close', () => {
      this.#sockets.delete(socket)
      if (!connection.isUpgraded) this.#handlers!.onConnection(-1)
    })
    if (!isTaken) socket.destroy()
  }

  #onRequest(req: IncomingMessage, res: ServerResponse, isExpecting = false): void {
    const response = this.#connections.get(req.socket)!.open(req, res)
    if (response === null) return
    response.isExpecting = isExpecting
    this.#dispatch(req, response, (request) => this.#handlers!.onRequest(response, request))
  }

  #dispatch(req: IncomingMessage, response: NodeResponse, serve: (request: NodeRequest) => void): void {
    const request = new NodeRequest(req)
    if (request.fault === null) return serve(request)
    const { status, body } = request.fault
    refuse(response, status, `x-request-id: ${makeRequestId()}\r\ncontent-type: ${JSON_TYPE}\r\n`, body as string)
  }

  #onFault(error: NodeJS.ErrnoException, socket: Socket): void {
    const reply = replyToFault(error)
    const framingFault = framingFaultOf(error)
    if (framingFault !== null) this.#handlers!.onFramingFault(framingFault, addressOf(socket))
    // A client that has said nothing gets no answer.
    if (reply === null || !socket.writable || socket.bytesRead === 0) return void socket.destroy()
    this.#connections.get(socket)?.fail(reply)
  }

  listen(host: string, port: number, isShared: boolean): Promise<number> {
    return new Promise((resolve) => {
      const failed = (): void => resolve(0)
      this.#server.once('error', failed)
      this.#server.listen({ host, port, exclusive: true, reusePort: isShared }, () => {
        this.#server.off('error', failed)
        resolve((this.#server.address() as AddressInfo).port)
      })
    })
  }

  shut(): void {
    // Its own would close connections, too.
    if (this.#server.listening) NetServer.prototype.close.call(this.#server)
  }

  close(): void {
    this.#handshakes?.close()
    clearInterval(this.#idleTimer)
    for (const socket of this.#sockets.keys()) socket.destroy()
    // Ends its timer.
    this.#server.close(() => {})
  }
}

/** Answers, and reads nothing that came behind the request. */
function refuse(res: ClientResponse, status: number, head: string, body: string | null): void {
  if (body === null) return void res.close()
  res.writeStatus(statusLine(status)).writeHeader('x-content-type-options', `nosniff\r\n${head.slice(0, -2)}`)
  res.end(body, true)
}

/** As many as uWebSockets.js takes. */
const HEADERS_MAX_COUNT = 100
const ABSOLUTE = /^https?:\/\/([^/?#]+)(.*)$/i
const BEYOND_ASCII = /[\x80-\xff]/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const NO_TARGET = /[\x00-\x20\x7f#]/

/** The head of a request that node:http has read. */
class NodeRequest implements ClientRequest {
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
    if (absolute !== null)
      for (let n = 0; n < headers.length; n += 2) if (headers[n] === 'host') headers[n + 1] = absolute[1]!
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
