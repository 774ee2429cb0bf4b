import type { HttpResponse } from 'uWebSockets.js'

/** Bytes that may wait for one client behind the frame that it is reading; beyond, it is cut off. */
export const SSE_MAX_WAITING_BYTES = 1 << 20
/** A comment line keeps proxies from closing a silent stream. */
export const SSE_COMMENT_MS = 15_000
/** More than 16 KiB in one cork while the socket is full can break chunk framing (uWebSockets.js#1249). */
const SSE_MAX_WRITE_BYTES = 15_000
const COMMENT = Buffer.from(': keep-alive\n\n')

const clients = new Set<SseClient>()
let commentTimer: NodeJS.Timeout | undefined

/** One client of a stream: writes while it reads, keeps a bounded queue while it does not. */
export class SseClient {
  readonly #res: HttpResponse
  readonly #onGone: () => void
  #queue: Uint8Array[] = []
  #waitingBytes = 0
  #limitBytes = SSE_MAX_WAITING_BYTES
  #blocked = false
  #closed = false

  /** @param onGone runs once when the client was cut off or the stream ended */
  constructor(res: HttpResponse, onGone: () => void) {
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
    // A client that has read everything gets any frame, be it larger than the bound: a snapshot of large records is.
    if (this.#waitingBytes === 0) this.#limitBytes = SSE_MAX_WAITING_BYTES + chunk.byteLength
    for (let at = 0; at < chunk.byteLength; at += SSE_MAX_WRITE_BYTES) {
      this.#queue.push(chunk.subarray(at, at + SSE_MAX_WRITE_BYTES))
    }
    this.#waitingBytes += chunk.byteLength
    if (!this.#blocked) this.#flush()
    if (this.#waitingBytes > this.#limitBytes) {
      // The library never closes a client that does not read.
      this.forget()
      this.#res.close()
    }
  }

  /** Ends the stream in order. What the client has not read by then is lost to it. */
  end(): void {
    if (this.#closed) return
    this.forget()
    // Not with the flag that closes: the library would write its `connection: close` into the body, after the last chunk.
    this.#res.cork(() => this.#res.end())
  }

  /** The connection is gone: drop everything. */
  forget(): void {
    if (this.#closed) return
    this.#closed = true
    this.#queue = []
    this.#waitingBytes = 0
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
      this.#waitingBytes -= piece.byteLength
      this.#res.cork(() => {
        if (!this.#res.write(piece as Uint8Array<ArrayBuffer>)) this.#blocked = true
      })
    }
    this.#queue.splice(0, sent)
  }
}
