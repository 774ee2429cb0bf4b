// The WebSockets of one worker, in the primary: of a lane, or of the primary's own plugins.
import type { WorkInFlight } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/clock.ts'
import {
  INLINE_MAX_BYTES,
  type KeptKind,
  KIND,
  type Kind,
  messageWeight,
  numberedText,
} from '../../transport/frames/frames.ts'
import type { Outbox } from '../../transport/rings/outbox.ts'
import { type ClientSocket, SOCKETS_MAX_UNHANDLED_BYTES, type SocketWorker } from '../http/client-socket.ts'
import type { Exchange } from '../http/exchange.ts'
import { type Owner, SharedBytes } from '../http/places.ts'
import { DEAF_MS } from './request-slots.ts'

const NOBODY: Owner = { network: '', route: '' }

/** Whom the messages of a socket are counted for. */
const ownerOf = (client: ClientSocket | null): Owner =>
  client === null ? NOBODY : { network: client.opening.network, route: client.opening.label }

/** Finds the client of a socket by the number that its worker has given it, and bounds what comes for the worker. How the worker hears of it is its own. */
export abstract class WorkerSockets implements SocketWorker {
  readonly #clients = new Map<number, ClientSocket>()
  readonly #unhandled = new SharedBytes('Messages of WebSockets', SOCKETS_MAX_UNHANDLED_BYTES)
  /** Sockets that are closed while messages of them are not handled: the weight of these, and when one was handled last, or it was closed. */
  readonly #closed = new Map<number, { unhandledBytes: number; readonly owner: Owner; readonly sinceMs: number }>()
  /** Messages that were being handled when the worker died; null while it lives. */
  #workAtDeath: WorkInFlight[] | null = null
  #pendingClose: [code: number, reason: string] | null = null

  /** The memory is only lent for the call. */
  protected abstract message(number: number, message: Uint8Array, isBinary: boolean): void
  abstract socketFlushed(number: number, bytes: number): void
  protected abstract closed(number: number, code: number, reason: string): void

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
    const client = exchange?.acceptSocket(this, number, protocol) ?? null
    this.#unhandled.add(ownerOf(client), messageWeight(0))
    if (client === null) {
      // The client was gone before. Not told at once: the `open` handler of the primary's own plugin has not begun.
      this.#leave(number, messageWeight(0), NOBODY)
      return void setImmediate(() => this.closed(number, 1006, ''))
    }
    this.#clients.set(number, client)
    if (this.#pendingClose !== null) client.closeWhenIdle(...this.#pendingClose)
  }

  /** The memory is only lent for the call. */
  send(number: number, message: Uint8Array, isBinary: boolean): void {
    this.#clients.get(number)?.send(message, isBinary)
  }

  /** Messages are handled, also of a socket that is closed. @param weight of all of them (`messageWeight`) */
  handled(number: number, weight: number): void {
    const client = this.#clients.get(number)
    const closed = this.#closed.get(number)
    if (client !== undefined) {
      this.#unhandled.add(ownerOf(client), -weight)
      client.handled(weight)
    } else if (closed !== undefined) {
      this.#unhandled.add(closed.owner, -weight)
      this.#leave(number, closed.unhandledBytes - weight, closed.owner)
    }
  }

  /** It is closed, and this is left of its messages. */
  #leave(number: number, unhandledBytes: number, owner: Owner): void {
    if (unhandledBytes > 0) this.#closed.set(number, { unhandledBytes, owner, sinceMs: steadyMs() })
    else this.#closed.delete(number)
  }

  /** True when half of the room is taken by sockets that are closed, and of which nothing has been handled for long. */
  isWornOut(nowMs: number): boolean {
    if (2 * this.#unhandled.held < SOCKETS_MAX_UNHANDLED_BYTES) return false
    let deafBytes = 0
    for (const { unhandledBytes, sinceMs } of this.#closed.values())
      if (nowMs - sinceMs >= DEAF_MS) deafBytes += unhandledBytes
    return 2 * deafBytes >= SOCKETS_MAX_UNHANDLED_BYTES
  }

  close(number: number, code: number, reason: string): void {
    this.#clients.get(number)?.close(code, reason)
  }

  // ── from clients ──────────────────────────────────────────────────────────

  socketMessage(number: number, message: Uint8Array, isBinary: boolean): boolean {
    const owner = ownerOf(this.#clients.get(number) ?? null)
    if (!this.#unhandled.tryAdd(owner, messageWeight(message.byteLength))) return false
    this.message(number, message, isBinary)
    return true
  }

  socketClosed(number: number, code: number, reason: string): void {
    const client = this.#clients.get(number)
    if (client === undefined) return
    this.#clients.delete(number)
    this.#leave(number, client.unhandledBytes, ownerOf(client))
    this.closed(number, code, reason)
  }
}

/** Bytes of the ring that messages take at most: the rest is for requests. */
const RING_SHARE_BYTES = 1 << 19
const RETRY_MS = 2

/** A frame that waits for room. */
interface Waiting {
  kind: Kind
  number: number
  body: Uint8Array | string
}

/** The WebSockets of a lane, which hears of them by frames in its ring. */
export class LaneSockets extends WorkerSockets {
  readonly #outbox: Outbox
  #waiting: Waiting[] = []
  #retryTimer: NodeJS.Timeout | undefined

  constructor(outbox: Outbox) {
    super()
    this.#outbox = outbox
  }

  override dispose(): void {
    clearTimeout(this.#retryTimer)
    this.#waiting = []
    super.dispose()
  }

  protected message(number: number, message: Uint8Array, isBinary: boolean): void {
    const kind = isBinary ? KIND.SOCKET_IN_BYTES : KIND.SOCKET_IN_TEXT
    // A copy: the library reuses the memory.
    if (this.#waiting.length > 0 || !this.#trySend(kind, number, message)) {
      this.#wait({ kind, number, body: message.slice() })
    }
  }

  socketFlushed(number: number, bytes: number): void {
    this.#send(KIND.SOCKET_FLUSHED, number, String(bytes))
  }

  protected closed(number: number, code: number, reason: string): void {
    this.#send(KIND.SOCKET_CLOSE, number, numberedText(code, reason))
  }

  /** Sends behind frames that wait: a close must not overtake a message. */
  #send(kind: KeptKind, number: number, body: string): void {
    if (this.#waiting.length === 0) this.#outbox.sendText(kind, number, body)
    else this.#wait({ kind, number, body })
  }

  #trySend(kind: Kind, number: number, body: Uint8Array): boolean {
    const outbox = this.#outbox
    if (body.byteLength <= INLINE_MAX_BYTES && outbox.ring.usedBytes > RING_SHARE_BYTES) return false
    const frame = outbox.begin(kind, number, body.byteLength)
    if (frame === null) return false
    frame.bytes.set(body, frame.at)
    frame.send(body.byteLength)
    return true
  }

  #wait(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#retryTimer ??= setTimeout(this.#retry, RETRY_MS)
  }

  readonly #retry = (): void => {
    this.#retryTimer = undefined
    let sent = 0
    for (const { kind, number, body } of this.#waiting) {
      if (typeof body === 'string') this.#outbox.sendText(kind, number, body)
      else if (!this.#trySend(kind, number, body)) break
      sent++
    }
    this.#waiting.splice(0, sent)
    if (this.#waiting.length > 0) this.#retryTimer = setTimeout(this.#retry, RETRY_MS)
  }
}
