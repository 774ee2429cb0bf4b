/// <reference path="./ws.d.ts" />

import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { withoutBlanks } from '../../../core/http/header-text.ts'
import { steadyMs } from '../../../core/schedule/steady-time.ts'
import type { HandshakeContext, SocketHandlers, SocketListener } from '../library.ts'
import type { ClientConnection } from './connection.ts'
import type { NodeHandshake, NodeResponse } from './response.ts'
import { NodeSocket } from './socket.ts'

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
    const own: NodeHandshake = {
      accept: (client, protocol, lines) => {
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
