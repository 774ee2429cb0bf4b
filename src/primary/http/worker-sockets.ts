// The WebSockets of one worker, in the primary: of a lane, or of the primary's own plugins.
import type { WorkInFlight } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import {
  type ClientSocket,
  SOCKETS_MAX_UNHANDLED_BYTES,
  type SocketWorker,
  UnhandledMessages,
} from './client-socket.ts'
import type { Exchange } from './exchange.ts'

/** Tells a worker of its sockets. */
export interface SocketPort {
  /** The memory is only lent for the call. */
  message(number: number, message: Uint8Array, isBinary: boolean): void
  /** Bytes that were sent have left for the client. */
  flushed(number: number, bytes: number): void
  closed(number: number, code: number, reason: string): void
  /** The client was gone before its socket was open. */
  refused(number: number): void
}

/** Finds the client of a socket by the number that its worker has given it, and bounds what comes for the worker. */
export class WorkerSockets implements SocketWorker {
  readonly #port: SocketPort
  readonly #clients = new Map<number, ClientSocket>()
  readonly #unhandled = new UnhandledMessages(SOCKETS_MAX_UNHANDLED_BYTES)
  /** Messages that were being handled when the worker died; null while it lives. */
  #workAtDeath: WorkInFlight[] | null = null
  #pendingClose: [code: number, reason: string] | null = null

  constructor(port: SocketPort) {
    this.#port = port
  }

  get size(): number {
    return this.#clients.size
  }

  /** Messages that are being handled: of a worker that is gone, when it died. */
  workInFlight(): WorkInFlight[] {
    if (this.#workAtDeath !== null) return this.#workAtDeath
    const works: WorkInFlight[] = []
    for (const { busySinceMs, opening } of this.#clients.values()) {
      if (busySinceMs === 0) continue
      const { label, plugin, requestId } = opening
      works.push({ kind: 'request', name: label, plugin, id: requestId, for_ms: steadyMs() - busySinceMs })
    }
    return works
  }

  /** Closes each socket as soon as no message of it is being handled, also sockets that are accepted later. */
  closeWhenIdle(code: number, reason: string): void {
    this.#pendingClose = [code, reason]
    for (const client of [...this.#clients.values()]) client.closeWhenIdle(code, reason)
  }

  /** Closes all sockets now. */
  closeAll(code: number, reason: string): void {
    for (const client of [...this.#clients.values()]) client.close(code, reason)
  }

  /** The worker is gone: its sockets are closed. */
  dispose(): void {
    this.#workAtDeath = this.workInFlight()
    const clients = [...this.#clients.values()]
    this.#clients.clear()
    for (const client of clients) client.close(1012, 'service restart')
  }

  // ── from the worker ───────────────────────────────────────────────────────

  /** A handshake is accepted. @param exchange null when the request was given up meanwhile */
  accept(exchange: Exchange | null, number: number, protocol: string): void {
    this.#unhandled.addOpening()
    const client = exchange?.acceptSocket(this, number, protocol) ?? null
    if (client === null) return this.#port.refused(number)
    this.#clients.set(number, client)
    if (this.#pendingClose !== null) client.closeWhenIdle(...this.#pendingClose)
  }

  /** The memory is only lent for the call. */
  send(number: number, message: Uint8Array, isBinary: boolean): void {
    this.#clients.get(number)?.send(message, isBinary)
  }

  /** Messages are handled, also of a socket that is closed. @param weight of all of them (`messageWeight`) */
  handled(number: number, weight: number): void {
    this.#unhandled.handled(weight)
    this.#clients.get(number)?.handled(weight)
  }

  close(number: number, code: number, reason: string): void {
    this.#clients.get(number)?.close(code, reason)
  }

  // ── from clients ──────────────────────────────────────────────────────────

  socketMessage(number: number, message: Uint8Array, isBinary: boolean): boolean {
    if (!this.#unhandled.tryAdd(message.byteLength)) return false
    this.#port.message(number, message, isBinary)
    return true
  }

  socketFlushed(number: number, bytes: number): void {
    this.#port.flushed(number, bytes)
  }

  socketClosed(number: number, code: number, reason: string): void {
    if (this.#clients.delete(number)) this.#port.closed(number, code, reason)
  }
}
