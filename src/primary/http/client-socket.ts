// The listener's end of one WebSocket, from its handshake on.
import type { ErrorCode } from '../../core/errors/catalogue.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import { errorReply, type Reply } from '../../runtime/endpoint/reply.ts'
import { messageWeight } from '../../transport/frames/frames.ts'
import type { ClientRequest, HandshakeContext, LibrarySocket } from './library.ts'

/** What the library asks for when a connection becomes a WebSocket. */
export interface Handshake {
  readonly key: string
  readonly context: HandshakeContext
  readonly limitBytes: number
}

const VERSION = '13'

/**
 * Why a request for a WebSocket is refused, or null. Source: RFC 6455, section 4.2.1.
 * @param context null when the library has seen no `sec-websocket-key` of the right length
 */
export function handshakeFault(req: ClientRequest, context: HandshakeContext | null): ErrorCode | null {
  const isUpgrade =
    /(?:^|[, \t])websocket(?:$|[, \t])/i.test(req.getHeader('upgrade')) &&
    /(?:^|[, \t])upgrade(?:$|[, \t])/i.test(req.getHeader('connection'))
  if (!isUpgrade || req.getHeader('sec-websocket-version') !== VERSION) return 'HTTP_UPGRADE_REQUIRED'
  if (context === null || !/^[A-Za-z0-9+/]{22}==$/.test(req.getHeader('sec-websocket-key'))) return 'HTTP_BAD_REQUEST'
  return null
}

/** The answer to a request that must speak WebSocket. Source: RFC 9110, section 15.5.22. */
export function upgradeRequired(): Reply {
  const reply = errorReply('HTTP_UPGRADE_REQUIRED')
  return { ...reply, head: `upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: ${VERSION}\r\n` }
}

/** Weight of the messages of all sockets of one thread that have come and are not handled, at most. */
export const SOCKETS_MAX_UNHANDLED_BYTES = 64 << 20

/** The byte budget of the messages of one WebSocket that have come and are not handled yet. */
class UnhandledMessages {
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Counts a message, also one beyond the budget. The opening of a socket, whose `open` handler is to run, is one of 0 bytes. */
  add(messageBytes: number): void {
    this.#bytes += messageWeight(messageBytes)
  }

  /** Counts a message that fits. False when it does not. */
  tryAdd(messageBytes: number): boolean {
    const bytes = this.#bytes + messageWeight(messageBytes)
    if (bytes > this.#maxBytes) return false
    this.#bytes = bytes
    return true
  }

  /** @param weight as `messageWeight` gives it */
  handled(weight: number): void {
    this.#bytes = Math.max(0, this.#bytes - weight)
  }
}

/** Bytes that a client may leave unread; beyond, it is cut off. */
const SOCKET_MAX_UNREAD_BYTES = 1 << 20
const LEFT_UNREAD = 'left too much unread'
/** Unread bytes of all clients together; beyond, the client with the most is cut off. */
const SOCKETS_MAX_UNREAD_BYTES = 256 << 20
/** Weight of the messages of one client that have come and are not handled, beside the first; beyond, it is closed with 1013. */
const SOCKET_MAX_UNHANDLED_BYTES = 4 << 20
/** The client of a socket that is closed in order has this long to read what was sent before, milliseconds. */
const SOCKET_CLOSE_MS = 5_000
/** The sender is told of bytes that have left for the client in portions of this size, or when all have left. */
const FLUSH_REPORT_BYTES = 64 * 1024

/** Close codes (RFC 6455, section 7.4.1) for the library's own reasons to close. It does not send them itself. */
const LIBRARY_CODES: Record<string, number> = {
  'Received too big message': 1009,
  'Received invalid UTF-8': 1007,
  'Received invalid WebSocket frame': 1002,
  'Received invalid close payload': 1002,
}

/** The request that has become a socket. */
interface Opening {
  readonly label: string
  readonly plugin: string
  readonly requestId: string
  readonly network: string
}

/** Handles the messages of a socket: a lane, or the plugins of the primary. */
export interface SocketWorker {
  /** The memory is only lent for the call. False when there is no room for the message. */
  socketMessage(number: number, message: Uint8Array, isBinary: boolean): boolean
  /** Bytes that were sent have left for the client. */
  socketFlushed(number: number, bytes: number): void
  socketClosed(number: number, code: number, reason: string): void
}

/** All open sockets. */
export const openSockets = new Set<ClientSocket>()
let totalUnreadBytes = 0

/** The listener's end of one WebSocket: the only place that writes to it. Once it is closed, nothing that is asked of it happens. */
export class ClientSocket {
  readonly opening: Opening
  readonly #limitBytes: number
  readonly #onGone: () => void
  readonly #worker: SocketWorker
  readonly #number: number
  /** Null before the handshake is done, and when it is closed. */
  #ws: LibrarySocket | null = null
  readonly #unhandled = new UnhandledMessages(SOCKET_MAX_UNHANDLED_BYTES)
  #busySinceMs = steadyMs()
  /** Bytes that were sent and not yet reported to the worker as flushed. */
  #sentBytes = 0
  #unreadBytes = 0
  #maxUnreadBytes = SOCKET_MAX_UNREAD_BYTES
  #pendingClose: [code: number, reason: string] | null = null
  /** It is closing, and the client has not read all that was sent before. */
  #closing: { code: number; reason: string; deadlineMs: number } | null = null
  /** Why the client was cut off; null when it was not. */
  #cause: [code: number, reason: string] | null = null

  /**
   * @param limitBytes length of one message at most
   * @param onGone told once when the connection is gone, or the library has refused the handshake
   */
  constructor(opening: Opening, worker: SocketWorker, number: number, limitBytes: number, onGone: () => void) {
    this.opening = opening
    this.#worker = worker
    this.#unhandled.add(0)
    this.#number = number
    this.#limitBytes = limitBytes
    this.#onGone = onGone
  }

  /** The handshake is done, and the connection has not ended. */
  get isOpen(): boolean {
    return this.#ws !== null
  }

  /** Since when a message of it is being handled, milliseconds since the epoch; 0: none is. */
  get busySinceMs(): number {
    return this.unhandledBytes === 0 ? 0 : this.#busySinceMs
  }

  /** Weight of its messages that have come and are not handled. */
  get unhandledBytes(): number {
    return this.#unhandled.bytes
  }

  // ── from its worker ───────────────────────────────────────────────────────

  /** The memory is only lent for the call. */
  send(message: Uint8Array, isBinary: boolean): void {
    const ws = this.#ws
    if (ws === null || this.#closing !== null) return
    this.#sentBytes += message.byteLength
    // A client that has read everything gets any message, even one beyond the limit.
    if (this.#unreadBytes === 0) this.#maxUnreadBytes = SOCKET_MAX_UNREAD_BYTES + message.byteLength
    if (ws.send(message as Uint8Array<ArrayBuffer>, isBinary) === 1) {
      if (this.#sentBytes >= FLUSH_REPORT_BYTES) this.#reportFlushed()
      return
    }
    this.#measure(ws)
    if (this.#unreadBytes > this.#maxUnreadBytes) this.#cutOff(1013, LEFT_UNREAD)
    else if (totalUnreadBytes > SOCKETS_MAX_UNREAD_BYTES) ClientSocket.#worst().#cutOff(1013, LEFT_UNREAD)
  }

  /** Messages are handled. @param weight of all of them (`messageWeight`) */
  handled(weight: number): void {
    this.#unhandled.handled(weight)
    if (this.unhandledBytes === 0 && this.#pendingClose !== null) this.close(...this.#pendingClose)
  }

  /** Closes it as soon as nothing of it is being handled. */
  closeWhenIdle(code: number, reason: string): void {
    this.#pendingClose = [code, reason]
    if (this.unhandledBytes === 0) this.close(code, reason)
  }

  /** Closes it in order. The library drops what a client has not read when it ends a socket, so that is waited for. */
  close(code: number, reason: string): void {
    const ws = this.#ws
    if (ws === null || this.#closing !== null) return
    if (ws.getBufferedAmount() === 0) ws.end(code, reason)
    else this.#closing = { code, reason, deadlineMs: steadyMs() + SOCKET_CLOSE_MS }
  }

  // ── from the library ──────────────────────────────────────────────────────

  opened(ws: LibrarySocket): void {
    this.#ws = ws
    openSockets.add(this)
  }

  /** The memory is only lent for the call. */
  received(message: Uint8Array, isBinary: boolean): void {
    if (this.#closing !== null) return
    if (message.byteLength > this.#limitBytes) return this.close(1009, 'message too large')
    if (this.unhandledBytes === 0) {
      this.#busySinceMs = steadyMs()
      this.#unhandled.add(message.byteLength)
    } else if (!this.#unhandled.tryAdd(message.byteLength)) return this.close(1013, 'too many messages wait')
    if (this.#worker.socketMessage(this.#number, message, isBinary)) return
    this.#unhandled.handled(messageWeight(message.byteLength))
    this.close(1013, 'the service is overloaded')
  }

  drained(): void {
    const ws = this.#ws
    if (ws === null) return
    this.#measure(ws)
    if (this.#closing !== null && this.#unreadBytes === 0) ws.end(this.#closing.code, this.#closing.reason)
  }

  closed(code: number, reason: string): void {
    this.#ws = null
    openSockets.delete(this)
    this.#onGone()
    totalUnreadBytes -= this.#unreadBytes
    this.#unreadBytes = 0
    const cause = this.#cause ?? (code === 1006 ? ([LIBRARY_CODES[reason] ?? 1006, ''] as const) : [code, reason])
    this.#worker.socketClosed(this.#number, cause[0] as number, cause[1] as string)
  }

  /** Called regularly. */
  expire(nowMs: number): void {
    if (this.#closing !== null && this.#closing.deadlineMs <= nowMs) {
      this.#cutOff(this.#closing.code, this.#closing.reason)
    }
  }

  #cutOff(code: number, reason: string): void {
    this.#cause = [code, reason]
    this.#ws?.close()
  }

  #measure(ws: LibrarySocket): void {
    const unreadBytes = ws.getBufferedAmount()
    totalUnreadBytes += unreadBytes - this.#unreadBytes
    this.#unreadBytes = unreadBytes
    if (unreadBytes === 0 || this.#sentBytes - unreadBytes >= FLUSH_REPORT_BYTES) this.#reportFlushed()
  }

  /** The open socket that has left the most unread. */
  static #worst(): ClientSocket {
    let worst: ClientSocket | undefined
    for (const socket of openSockets)
      if (worst === undefined || socket.#unreadBytes > worst.#unreadBytes) worst = socket
    return worst!
  }

  #reportFlushed(): void {
    const flushedBytes = Math.max(0, this.#sentBytes - this.#unreadBytes)
    if (flushedBytes === 0) return
    this.#sentBytes -= flushedBytes
    this.#worker.socketFlushed(this.#number, flushedBytes)
  }
}
