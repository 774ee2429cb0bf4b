import type { AuthValidator, Data, HttpContext } from './http-request.ts'
import type { Owner } from './owner.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/** One WebSocket client. It belongs to one thread from its handshake to its end: what is kept of it there is always found again. */
export interface Socket {
  /** Unique over all replicas, for ever: `ws_` and a time-ordered id. */
  readonly id: string
  /** Query and path parameters of the handshake, and `_auth`. */
  readonly data: Data
  /** Of the handshake: what its handlers publish and log carries it. */
  readonly requestId: string
  /** Aborted when the socket is closed, by whomever, before `close` runs. */
  readonly signal: AbortSignal
  /**
   * Sends text as it is, bytes as a binary message, anything else as JSON text. Nothing happens when the socket is closed.
   * A client that leaves 1 MiB unread is cut off.
   * @returns false when much is unread (256 KiB), or the socket is closed: wait for `drained` before sending more
   */
  send(message: unknown): boolean
  /** Resolves when there is room again, or the socket is closed. */
  drained(): Promise<void>
  /**
   * Closes in order, behind what was sent. Messages that have come and were not handled are dropped.
   * @param code 1000 to 1003, 1007 to 1014 or 3000 to 4999. Default 1000
   * @param reason at most 123 bytes of UTF-8
   * @throws RangeError for another code or a longer reason
   */
  close(code?: number, reason?: string): void
}

/** Of one socket they run one after another: `open`, then each message, then `close`. */
export interface SocketHandlers {
  /** The handshake is done. What it throws closes the socket with 1011. */
  open?(socket: Socket, data: Data, context: HttpContext): unknown
  /** Text as a string, binary as bytes. What it throws closes the socket with 1011. */
  message?(socket: Socket, message: string | Uint8Array): unknown
  /** The socket is closed, by whomever. 1006: without a word. */
  close?(socket: Socket, code: number, reason: string): unknown
}

export interface SocketOptions {
  /** Makes the handshake ask for a token: `Authorization: Bearer <token>`, or `Sec-WebSocket-Protocol: bearer, <token>`. */
  authValidator?: AuthValidator
  /** Any Standard Schema; `data` has its output. A mismatch is answered with 422 instead of the handshake. */
  query?: StandardSchemaV1
  params?: StandardSchemaV1
  tags?: string[]
  summary?: string
}

/** A WebSocket route as a thread registers it. */
export interface SocketRoute {
  owner: Owner
  path: string
  handlers: SocketHandlers
  options: SocketOptions
}
