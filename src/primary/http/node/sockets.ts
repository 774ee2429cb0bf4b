/// <reference path="./ws.d.ts" />
// WebSockets by the package `ws`, from handshake to close.
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { withoutBlanks } from '../../../core/http/http-error.ts'
import { steadyMs } from '../../../core/schedule/clock.ts'
import type { HandshakeContext, LibrarySocket, SocketHandlers, SocketListener } from '../library.ts'
import type { ClientConnection, NodeHandshake, NodeResponse } from './connection.ts'

/** A WebSocket whose client is silent for this long is closed; it is pinged before. */
const IDLE_MS = 120_000
const PING_MS = 60_000

/** Close codes (RFC 6455, section 7.4.1) for faults of the client. */
const FAULT_CODES: Record<string, number> = {
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1009,
  WS_ERR_INVALID_UTF8: 1007,
}

/** One WebSocket of the package `ws`. */
class NodeSocket implements LibrarySocket {
  readonly #ws: WebSocket
  readonly #tcp: Socket
  readonly #socket: SocketListener
  readonly #onFault: (error: unknown) => void
  #heardMs = steadyMs()
  #isBlocked = false
  #isOver = false

  constructor(ws: WebSocket, tcp: Socket, socket: SocketListener, onFault: (error: unknown) => void) {
    this.#ws = ws
    this.#tcp = tcp
    this.#socket = socket
    this.#onFault = onFault
    ws.on('message', (message: Buffer, isBinary: boolean) => {
      this.#heardMs = steadyMs()
      if (!this.#isOver) this.#guard(() => socket.received(message, isBinary))
    })
    ws.on('ping', () => this.#heard())
    ws.on('pong', () => this.#heard())
    // `ws` closes it by itself, with the code that fits.
    ws.on('error', ({ code = '' }: NodeJS.ErrnoException) =>
      this.#over(code.startsWith('WS_ERR_') ? (FAULT_CODES[code] ?? 1002) : 1006, ''),
    )
    ws.on('close', (code: number, reason: Buffer) => this.#over(code, reason.toString()))
    this.#guard(() => socket.opened(this))
  }

  #heard(): void {
    this.#heardMs = steadyMs()
  }

  /** Called regularly: pings a silent client, and cuts off a dead one. */
  check(nowMs: number): void {
    const silentMs = nowMs - this.#heardMs
    if (silentMs > IDLE_MS) this.#ws.terminate()
    else if (silentMs > PING_MS && !this.#isOver) this.#ws.ping()
  }

  send(message: Uint8Array, isBinary: boolean): number {
    this.#ws.send(Buffer.from(message), { binary: isBinary }, this.#sent)
    this.#isBlocked = this.#ws.bufferedAmount > 0
    return this.#isBlocked ? 0 : 1
  }

  readonly #sent = (): void => {
    if (!this.#isBlocked || this.#isOver) return
    this.#isBlocked = this.#ws.bufferedAmount > 0
    this.#guard(() => this.#socket.drained())
  }

  getBufferedAmount(): number {
    return this.#ws.bufferedAmount
  }

  end(code: number, reason: string): void {
    try {
      this.#ws.close(code, reason)
    } catch {
      // Codes that say that there was none may not be sent (RFC 6455, section 7.4.1).
      this.#ws.close()
    }
    // Also for a client that does not answer the close frame.
    this.#tcp.end()
    this.#over(code, reason)
  }

  close(): void {
    this.#ws.terminate()
    this.#over(1006, '')
  }

  /** Once. The socket is told at once, not when the client has answered. */
  #over(code: number, reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#guard(() => this.#socket.closed(code, reason))
  }

  #guard(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#onFault(error)
    }
  }
}

/** The client of a socket that is closed has this long to answer the close frame, milliseconds. */
const CLOSE_MS = 5_000
const CHECK_MS = 10_000

/** Makes WebSockets of connections. */
export class Handshakes {
  readonly #handlers: SocketHandlers
  readonly #server: WebSocketServer
  readonly #open = new Set<NodeSocket>()
  readonly #checkTimer: NodeJS.Timeout
  // Of the one handshake that is being accepted.
  #protocol = ''
  #head: readonly string[] = []

  constructor(handlers: SocketHandlers) {
    this.#handlers = handlers
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      // What is compressed costs memory for each socket, and tells lengths of secrets.
      perMessageDeflate: false,
      maxPayload: 2 * handlers.limitBytes,
      closeTimeout: CLOSE_MS,
      handleProtocols: () => this.#protocol || false,
    })
    this.#server.on('headers', (lines: string[]) => {
      for (let n = 0; n < this.#head.length; n += 2) lines.push(`${this.#head[n]}: ${this.#head[n + 1]}`)
    })
    this.#checkTimer = setInterval(() => {
      for (const socket of this.#open) socket.check(steadyMs())
    }, CHECK_MS).unref()
  }

  /**
   * Opens the response to a request that asks for a WebSocket: whoever answers otherwise closes the connection.
   * @returns null when the request is not served; else the response, with what the listener gets of it
   */
  begin(
    connection: ClientConnection,
    req: IncomingMessage,
    head: Buffer,
  ): { response: NodeResponse; context: HandshakeContext } | null {
    const socket = req.socket
    // node:http has taken its own away.
    socket.on('error', () => socket.destroy())
    const res = new ServerResponse(req)
    res.shouldKeepAlive = false
    res.assignSocket(socket)
    const response = connection.open(req, res)
    if (response === null) return null
    res.on('finish', () => {
      res.detachSocket(socket)
      socket.destroySoon()
    })
    // Nobody reads the connection meanwhile, so that the end of a client that leaves would not show. What it sends stays where it is.
    const look = (): void => void socket.read(0)
    const leave = (): void => void socket.destroy()
    socket.on('readable', look).on('end', leave)
    const own: NodeHandshake = {
      accept: (client, protocol, lines) => {
        socket.off('readable', look).off('end', leave)
        res.detachSocket(socket)
        connection.isUpgraded = true
        socket.on('close', this.#handlers.onGone)
        this.#protocol = protocol
        this.#head = lines
        this.#accept(req, socket, head, client)
      },
    }
    return { response, context: { own, cork: (write) => write() } }
  }

  #accept(req: IncomingMessage, socket: Socket, head: Buffer, client: SocketListener): void {
    let isAccepted = false
    this.#server.handleUpgrade(req, socket, head, (ws: WebSocket) => {
      isAccepted = true
      const opened = new NodeSocket(ws, socket, client, this.#handlers.onFault)
      this.#open.add(opened)
      socket.on('close', () => this.#open.delete(opened))
    })
    // The client has gone, or its list of protocols is malformed. Not at once: nobody knows the socket yet.
    if (!isAccepted) setImmediate(() => client.closed(1006, ''))
  }

  close(): void {
    clearInterval(this.#checkTimer)
  }
}

/** True for a request that wants to become a WebSocket, however well it says so. */
export function wantsSocket({ method, headers }: IncomingMessage): boolean {
  const isBare = headers['content-length'] === undefined && headers['transfer-encoding'] === undefined
  return method === 'GET' && isBare && /(?:^|[, \t])websocket(?:$|[, \t])/i.test(headers.upgrade ?? '')
}

/** uWebSockets.js, too, takes a request for a handshake by this alone. */
export const hasKey = ({ headers }: IncomingMessage): boolean => headers['sec-websocket-key']?.length === 24

/**
 * The head of a request without its wish for another protocol, which a server may ignore (RFC 9110, section 7.8). node:http leaves the
 * body of such a request to whoever listens for upgrades; read again, it is a request like any other.
 */
export function plainHead({ method, url, rawHeaders }: IncomingMessage): Buffer {
  let text = `${method} ${url} HTTP/1.1\r\n`
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n]!
    if (/^upgrade$/i.test(name)) continue
    const value = /^connection$/i.test(name) ? withoutUpgrade(rawHeaders[n + 1]!) : rawHeaders[n + 1]!
    text += `${name}: ${value}\r\n`
  }
  return Buffer.from(`${text}\r\n`, 'latin1')
}

function withoutUpgrade(value: string): string {
  const tokens = value.split(',').map(withoutBlanks)
  return tokens.filter((token) => !/^(?:upgrade|http2-settings)$/i.test(token)).join(', ')
}
