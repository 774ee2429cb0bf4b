/** The part of the package that the listener uses. Source: ws 8, doc/ws.md. */
declare module 'ws' {
  import type { EventEmitter } from 'node:events'
  import type { IncomingMessage } from 'node:http'
  import type { Duplex } from 'node:stream'

  export class WebSocket extends EventEmitter {
    /** Bytes that were sent and are not with the kernel. */
    readonly bufferedAmount: number
    send(data: Uint8Array, options: { binary: boolean }, done: (error?: Error) => void): void
    /** @throws for a code that may not be sent */
    close(code?: number, reason?: string): void
    terminate(): void
    ping(): void
  }

  export interface ServerOptions {
    noServer: true
    clientTracking: false
    perMessageDeflate: false
    /** Bytes of a message at most. */
    maxPayload: number
    /** Milliseconds until a client that does not answer a close frame is cut off. */
    closeTimeout: number
    /** The protocol that is accepted; false for none. */
    handleProtocols: () => string | false
  }

  export class WebSocketServer extends EventEmitter {
    constructor(options: ServerOptions)
    handleUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer, done: (ws: WebSocket) => void): void
  }
}
