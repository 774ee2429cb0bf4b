import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { steadyMs } from '../../../core/schedule/steady-time.ts'
import type { LibrarySocket, SocketListener } from '../library.ts'

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
export class NodeSocket implements LibrarySocket {
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
