import type { ClientResponse } from './library.ts'

/** Bytes that may wait for one client behind the frame that it is reading; beyond, the client is cut off. */
export const SSE_MAX_WAITING_BYTES = 1 << 20
/** Bytes that may wait for all clients together; beyond, the client with the most is cut off, until the rest fits. */
export const SSE_MAX_TOTAL_BYTES = 256 << 20
/** Memory that a piece takes beside its bytes, roughly: it counts where there are many small ones. */
const PIECE_OVERHEAD_BYTES = 128
/** A comment line keeps proxies from closing a silent stream. */
export const SSE_COMMENT_MS = 15_000
/** More than 16 KiB in one cork while the socket is full can break chunk framing (uWebSockets.js#1249). */
const SSE_MAX_WRITE_BYTES = 15_000
const COMMENT = Buffer.from(': keep-alive\n\n')

const clients = new Set<SseClient>()
let commentTimer: NodeJS.Timeout | undefined
/** Bytes that wait for all clients. */
let totalWaitingBytes = 0

/** One client of a stream: writes while it reads, keeps a bounded queue while it does not. */
export class SseClient {
  readonly #res: ClientResponse
  readonly #onGone: () => void
  #queue: Uint8Array[] = []
  #waitingBytes = 0
  #limitBytes = SSE_MAX_WAITING_BYTES
  #blocked = false
  #closed = false

  /** @param onGone runs once when the client was cut off or the stream ended */
  constructor(res: ClientResponse, onGone: () => void) {
    this.#res = res
    this.#onGone = onGone
    res.onWritable(() => {
      this.#blocked = false
      this.#flush()
      return !this.#blocked
    })
    clients.add(this)
    commentTimer ??= setInterval(() => {
      for (const client of clients) client.send(COMMENT)
    }, SSE_COMMENT_MS).unref()
  }

  send(chunk: Uint8Array): void {
    if (this.#closed) return
    // A client that has read everything gets any frame, even one beyond the limit: a snapshot of large records is.
    const isIdle = this.#queue.length === 0
    for (let at = 0; at < chunk.byteLength; at += SSE_MAX_WRITE_BYTES) {
      this.#push(chunk.subarray(at, at + SSE_MAX_WRITE_BYTES))
    }
    if (isIdle) this.#limitBytes = SSE_MAX_WAITING_BYTES + this.#waitingBytes
    if (!this.#blocked) this.#flush()
    if (this.#waitingBytes > this.#limitBytes) this.#cutOff()
    while (totalWaitingBytes > SSE_MAX_TOTAL_BYTES && clients.size > 0) SseClient.#worst().#cutOff()
  }

  #push(piece: Uint8Array): void {
    this.#queue.push(piece)
    this.#count(piece.byteLength + PIECE_OVERHEAD_BYTES)
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes
    totalWaitingBytes += bytes
  }

  /** The library never closes the connection of a client that does not read. */
  #cutOff(): void {
    this.forget()
    this.#res.close()
  }

  static #worst(): SseClient {
    let worst: SseClient | undefined
    for (const client of clients) {
      if (worst === undefined || client.#waitingBytes > worst.#waitingBytes) worst = client
    }
    return worst!
  }

  /** Ends the stream. Pieces that the client has not read are dropped. @param isBroken without its last chunk: it is not whole */
  end(isBroken = false): void {
    if (this.#closed) return
    if (isBroken) return this.#cutOff()
    this.forget()
    // Without the flag that closes: the library would write its `connection: close` into the body, after the last chunk.
    this.#res.cork(() => this.#res.end())
  }

  /** The connection is gone: drop everything. */
  forget(): void {
    if (this.#closed) return
    this.#closed = true
    this.#queue = []
    this.#count(-this.#waitingBytes)
    clients.delete(this)
    if (clients.size === 0) {
      clearInterval(commentTimer)
      commentTimer = undefined
    }
    this.#onGone()
  }

  #flush(): void {
    let sent = 0
    while (sent < this.#queue.length && !this.#blocked && !this.#closed) {
      const piece = this.#queue[sent++]!
      this.#count(-piece.byteLength - PIECE_OVERHEAD_BYTES)
      this.#res.cork(() => {
        if (!this.#res.write(piece as Uint8Array<ArrayBuffer>)) this.#blocked = true
      })
    }
    this.#queue.splice(0, sent)
  }
}
