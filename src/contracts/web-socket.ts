import type { Guard } from './http-hooks.ts'
import type { AuthValidator, Data, HttpContext, ThrownAnswers } from './http-request.ts'
import type { Owner } from './owner.ts'
import type { StandardSchemaV1 } from './standard-schema.ts'

/** One WebSocket client. It stays in one thread from its handshake to its end, so state that a plugin keeps about it there is always found again. */
export interface Socket {
  /** Unique over all replicas and never used again: `ws_` and a time-ordered id. */
  readonly id: string
  /** Query and path parameters of the handshake, and `_auth`. */
  readonly data: Data
  /** Request id of the handshake. Whatever the socket's handlers publish or log carries it. */
  readonly requestId: string
  /** Aborted when either side has closed the socket, before `close` runs. */
  readonly signal: AbortSignal
  /**
   * Sends a string as text, bytes as a binary message, anything else as JSON text. Does nothing when the socket is closed.
   * A client that leaves 1 MiB unread is disconnected.
   * @returns false when 256 KiB are unread or the socket is closed: wait for `drained` before sending more
   */
  send(message: unknown): boolean
  /** Resolves when more can be sent, or when the socket is closed. */
  drained(): Promise<void>
  /**
   * Closes the socket after everything that was sent. Messages that were received but not handled yet are dropped.
   * @param code 1000 to 1003, 1007 to 1014 or 3000 to 4999. Default 1000
   * @param reason at most 123 bytes of UTF-8
   * @throws RangeError for another code or a longer reason
   */
  close(code?: number, reason?: string): void
}

/** The handlers of one socket run one after another: `open`, then `message` for each message, then `close`. */
export interface SocketHandlers<Added = unknown> {
  /** Called after the handshake. An error closes the socket with 1011. */
  open?(socket: Socket, data: Data, context: HttpContext & Added): unknown
  /** Gets text as a string and binary as bytes. An error closes the socket with 1011. */
  message?(socket: Socket, message: string | Uint8Array): unknown
  /** Called when either side has closed the socket. Code 1006: the connection ended without a close message. */
  close?(socket: Socket, code: number, reason: string): unknown
}

export interface SocketOptions {
  /** Makes the handshake require a token: `Authorization: Bearer <token>`, or `Sec-WebSocket-Protocol: bearer, <token>`. */
  authValidator?: AuthValidator
  /** Any Standard Schema; `data` gets its output. A mismatch is answered with 422 instead of the handshake. */
  query?: StandardSchemaV1
  params?: StandardSchemaV1
  /** Run before the handshake. */
  // biome-ignore lint/suspicious/noExplicitAny: each adds its own to the context
  guards?: readonly Guard<any>[]
  /** What they throw, for the API documents. */
  throws?: ThrownAnswers
  tags?: string[]
  summary?: string
  description?: string
}

/** A WebSocket route as a thread registers it. */
export interface SocketRoute {
  owner: Owner
  path: string
  handlers: SocketHandlers
  options: SocketOptions
  /** Where it was registered; only with guards. */
  place?: string
}
