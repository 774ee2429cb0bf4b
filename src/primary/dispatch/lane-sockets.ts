import type { WorkInFlight } from '../../contracts/registry.ts'
import { steadyMs } from '../../core/schedule/steady-time.ts'
import {
  INLINE_MAX_BYTES,
  KIND,
  numberedText,
  parseNumbered,
  readNumber,
  readText,
} from '../../transport/frames/frames.ts'
import type { Inbox } from '../../transport/rings/inbox.ts'
import type { Outbox } from '../../transport/rings/outbox.ts'
import {
  type ClientSocket,
  SOCKETS_MAX_UNHANDLED_BYTES,
  type SocketWorker,
  UnhandledMessages,
} from '../http/client-socket.ts'
import type { Exchange } from '../http/exchange.ts'

/** Bytes of the ring that messages take at most: the rest is for requests. */
const RING_SHARE_BYTES = 1 << 19
const RETRY_MS = 2

/** A frame that waits for room. */
interface Waiting {
  kind: number
  number: number
  body: Uint8Array | string
}

/** The WebSockets of one lane, in the primary: messages of clients go into the ring, messages of the lane go to the clients. */
export class LaneSockets implements SocketWorker {
  readonly #outbox: Outbox
  /** By the number of the socket in the lane. */
  readonly #clients = new Map<number, ClientSocket>()
  #waiting: Waiting[] = []
  readonly #unhandled = new UnhandledMessages(SOCKETS_MAX_UNHANDLED_BYTES)
  #retryTimer: NodeJS.Timeout | undefined
  /** Messages that were being handled when the lane died; null while it lives. */
  #workAtDeath: WorkInFlight[] | null = null
  #pendingClose: [code: number, reason: string] | null = null

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  get size(): number {
    return this.#clients.size
  }

  /** Messages that are being handled: of a lane that is gone, when it died. */
  workInFlight(): WorkInFlight[] {
    if (this.#workAtDeath !== null) return this.#workAtDeath
    const works: WorkInFlight[] = []
    for (const { busySinceMs, label, plugin, requestId } of this.#clients.values()) {
      if (busySinceMs === 0) continue
      works.push({ kind: 'request', name: label, plugin, id: requestId, for_ms: steadyMs() - busySinceMs })
    }
    return works
  }

  /** The lane has accepted a handshake. @param exchange null when the request was given up meanwhile */
  accept(exchange: Exchange | null, text: string): void {
    const [number, protocol] = parseNumbered(text)
    this.#unhandled.addOpening()
    const client = exchange?.acceptSocket(this, number, protocol) ?? null
    if (client === null) return this.#send(KIND.SOCKET_CLOSED, number, numberedText(1006, ''))
    this.#clients.set(number, client)
    if (this.#pendingClose !== null) client.closeWhenIdle(...this.#pendingClose)
  }

  /** A frame of the lane. */
  onFrame(kind: number, number: number, inbox: Inbox, at: number, length: number): void {
    const client = this.#clients.get(number)
    switch (kind) {
      case KIND.SOCKET_SEND_TEXT:
      case KIND.SOCKET_SEND_BYTES:
        return client?.send(
          new Uint8Array(inbox.bytes.buffer, inbox.bytes.byteOffset + at, length),
          kind === KIND.SOCKET_SEND_BYTES,
        )
      case KIND.SOCKET_HANDLED: {
        const weight = readNumber(inbox, at, length)
        // Also when the socket is closed: the lane still handles its messages.
        this.#unhandled.handled(weight)
        return client?.handled(weight)
      }
      case KIND.SOCKET_CLOSE:
        return client?.close(...parseNumbered(readText(inbox, at, length)))
    }
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

  /** The lane is gone: its sockets are closed. */
  dispose(): void {
    clearTimeout(this.#retryTimer)
    this.#waiting = []
    this.#workAtDeath = this.workInFlight()
    const clients = [...this.#clients.values()]
    this.#clients.clear()
    for (const client of clients) client.close(1012, 'service restart')
  }

  // ── from clients ──────────────────────────────────────────────────────────

  socketMessage(number: number, message: Uint8Array, isBinary: boolean): boolean {
    if (!this.#unhandled.tryAdd(message.byteLength)) return false
    const kind = isBinary ? KIND.SOCKET_BYTES : KIND.SOCKET_TEXT
    // A copy: the library reuses the memory.
    if (this.#waiting.length > 0 || !this.#trySend(kind, number, message)) {
      this.#wait({ kind, number, body: message.slice() })
    }
    return true
  }

  socketFlushed(number: number, bytes: number): void {
    this.#send(KIND.SOCKET_FLUSHED, number, String(bytes))
  }

  socketClosed(number: number, code: number, reason: string): void {
    if (this.#clients.delete(number)) this.#send(KIND.SOCKET_CLOSED, number, numberedText(code, reason))
  }

  /** Sends behind frames that wait: a close must not overtake a message. */
  #send(kind: number, number: number, text: string): void {
    if (this.#waiting.length === 0) this.#outbox.answerText(kind, number, text)
    else this.#wait({ kind, number, body: text })
  }

  #trySend(kind: number, number: number, body: Uint8Array): boolean {
    const outbox = this.#outbox
    if (body.byteLength <= INLINE_MAX_BYTES && outbox.usedBytes > RING_SHARE_BYTES) return false
    const at = outbox.begin(body.byteLength, false)
    if (at < 0) return false
    outbox.bytes.set(body, at)
    outbox.end(body.byteLength, kind, number)
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
      if (typeof body === 'string') this.#outbox.answerText(kind, number, body)
      else if (!this.#trySend(kind, number, body)) break
      sent++
    }
    this.#waiting.splice(0, sent)
    if (this.#waiting.length > 0) this.#retryTimer = setTimeout(this.#retry, RETRY_MS)
  }
}
