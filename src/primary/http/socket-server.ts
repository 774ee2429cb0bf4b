import type { HttpRequest, HttpResponse, us_socket_context_t, WebSocketBehavior } from 'uWebSockets.js'
import type { SocketUserData } from './client-socket.ts'
import { occupyFreedMemory } from './freed-memory.ts'
import type { LibraryApp } from './listen-socket.ts'

/** A WebSocket whose client is silent for this long is closed; it is pinged before. */
export const SOCKET_IDLE_SEC = 120

export interface SocketServerOptions {
  /** A message beyond it is closed with 1009. */
  readonly limitBytes: number
  readonly onHandshake: (res: HttpResponse, req: HttpRequest, context: us_socket_context_t) => void
  /** Told when a connection is gone that a handshake has made a WebSocket. */
  readonly onGone: () => void
  readonly onFault: (error: unknown) => void
}

/** Hands what the library says of WebSockets to the `ClientSocket` that each of them has. */
export function serveSockets(app: LibraryApp, options: SocketServerOptions): void {
  const guard = (work: () => void): void => {
    try {
      work()
    } catch (error) {
      // Thrown into the library, the error would end the process.
      options.onFault(error)
    }
  }
  app.ws<SocketUserData>('/*', {
    // A message beyond the limit closes the socket with a code. Far beyond it the library cuts the socket off without one.
    maxPayloadLength: 2 * options.limitBytes,
    // `ClientSocket` counts it.
    maxBackpressure: 0,
    idleTimeout: SOCKET_IDLE_SEC,
    sendPingsAutomatically: true,
    upgrade: options.onHandshake,
    open: (ws) => {
      occupyFreedMemory()
      guard(() => ws.getUserData().socket.opened(ws))
    },
    message: (ws, message, isBinary) => guard(() => ws.getUserData().socket.received(message, isBinary)),
    drain: (ws) => guard(() => ws.getUserData().socket.drained()),
    close: (ws, code, reason) => {
      guard(() => ws.getUserData().socket.closed(code, Buffer.from(reason).toString()))
      options.onGone()
    },
  } satisfies WebSocketBehavior<SocketUserData>)
}
