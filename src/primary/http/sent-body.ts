// Bodies that are sent at the pace of their clients: files, streams, events.
import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { ClientResponse } from './library.ts'

/** A client that reads nothing of a body for this long is cut off, milliseconds. */
const BODY_STALL_MS = 30_000
const CHECK_MS = 1_000

/** A body that is being sent. */
interface WatchedBody {
  /** Since when its client has read nothing of what waits for it, milliseconds; null while nothing waits. */
  readonly stuckSinceMs: number | null
  cutOff(): void
}

const bodies = new Set<WatchedBody>()
let timer: NodeJS.Timeout | undefined

/** Cuts the body off when its client has stopped reading. */
function watch(body: WatchedBody): void {
  bodies.add(body)
  timer ??= setInterval(check, CHECK_MS).unref()
}

function unwatch(body: WatchedBody): void {
  bodies.delete(body)
  if (bodies.size > 0) return
  clearInterval(timer)
  timer = undefined
}

function check(): void {
  const stuckMs = steadyMs() - BODY_STALL_MS
  for (const body of bodies) if (body.stuckSinceMs !== null && body.stuckSinceMs < stuckMs) body.cutOff()
}

/** The sender is told of bytes that have left in portions of this size; each lets it read on. */
const FLUSH_REPORT_BYTES = 60_000

/** The body of an answer whose length is known, sent in pieces. It reports how many bytes have left, so that the sender keeps the client's pace. */
export class PacedBody implements WatchedBody {
  readonly #res: ClientResponse
  readonly #lengthBytes: number
  readonly #isLast: boolean
  readonly #onFlushed: (bytes: number) => void
  readonly #onGone: () => void
  readonly #pieces: Uint8Array[] = []
  /** Offset of the first piece in the body. */
  #at = 0
  #unreportedBytes = 0
  #isBlocked = false
  #isOver = false
  #progressMs = steadyMs()

  /**
   * @param isLast nothing is to be read behind the request
   * @param onGone runs once when all is sent, or the client was cut off
   */
  constructor(
    res: ClientResponse,
    lengthBytes: number,
    isLast: boolean,
    onFlushed: (bytes: number) => void,
    onGone: () => void,
  ) {
    this.#res = res
    this.#isLast = isLast
    this.#lengthBytes = lengthBytes
    this.#onFlushed = onFlushed
    this.#onGone = onGone
    res.onWritable((offset) => {
      this.#isBlocked = false
      this.#flushed(offset)
      this.#flush()
      return !this.#isBlocked
    })
    watch(this)
  }

  get stuckSinceMs(): number | null {
    return this.#pieces.length > 0 ? this.#progressMs : null
  }

  send(piece: Uint8Array): void {
    if (this.#isOver) return
    this.#pieces.push(piece)
    if (!this.#isBlocked) this.#flush()
  }

  /** No further piece comes: a body that is not complete breaks off. */
  end(): void {
    if (this.#isOver) return
    this.forget()
    this.#res.close()
  }

  cutOff(): void {
    this.end()
  }

  /** The connection is gone. */
  forget(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#pieces.length = 0
    unwatch(this)
    this.#onGone()
  }

  /** The library does not keep a piece that did not fit: it says how much of it was written. */
  #flush(): void {
    while (this.#pieces.length > 0 && !this.#isBlocked && !this.#isOver) {
      const piece = this.#pieces[0]!
      // The library closes a connection on which nothing happens.
      if (this.#isLast) this.#res.pause()
      this.#res.cork(() => {
        const [isAccepted, isComplete] = this.#res.tryEnd(piece as Uint8Array<ArrayBuffer>, this.#lengthBytes)
        if (isComplete) {
          // Reported before the end: the sender waits for it.
          this.#onFlushed(piece.byteLength + this.#unreportedBytes)
          return this.forget()
        }
        this.#isBlocked = !isAccepted
        this.#flushed(this.#res.getWriteOffset())
      })
    }
  }

  #flushed(offset: number): void {
    let flushedBytes = offset - this.#at
    if (flushedBytes <= 0) return
    this.#progressMs = steadyMs()
    this.#unreportedBytes += flushedBytes
    while (flushedBytes > 0) {
      const piece = this.#pieces[0]!
      const part = Math.min(flushedBytes, piece.byteLength)
      if (part === piece.byteLength) this.#pieces.shift()
      else this.#pieces[0] = piece.subarray(part)
      flushedBytes -= part
      this.#at += part
    }
    if (this.#unreportedBytes < FLUSH_REPORT_BYTES && this.#pieces.length > 0) return
    this.#onFlushed(this.#unreportedBytes)
    this.#unreportedBytes = 0
  }
}

/** More than 16 KiB in one cork while the socket is full can break chunk framing (uWebSockets.js#1249). */
const MAX_WRITE_BYTES = 15_000

/** The body of an answer whose length nobody knows, sent in pieces. It reports how many bytes have left, so that the sender keeps the client's pace. */
export class ChunkedBody implements WatchedBody {
  readonly #res: ClientResponse
  readonly #isLast: boolean
  readonly #onFlushed: (bytes: number) => void
  readonly #onGone: () => void
  readonly #pieces: Uint8Array[] = []
  /** Bytes that the library has taken and the client has not. */
  #takenBytes = 0
  #unreportedBytes = 0
  #willReport = false
  #isBlocked = false
  #isOver = false
  #progressMs = steadyMs()

  /**
   * @param isLast nothing is to be read behind the request
   * @param onGone runs once when all is sent, or the client was cut off
   */
  constructor(res: ClientResponse, isLast: boolean, onFlushed: (bytes: number) => void, onGone: () => void) {
    this.#res = res
    this.#isLast = isLast
    this.#onFlushed = onFlushed
    this.#onGone = onGone
    res.onWritable(() => {
      this.#isBlocked = false
      this.#flushed(this.#takenBytes)
      this.#takenBytes = 0
      this.#flush()
      return !this.#isBlocked
    })
    watch(this)
  }

  get stuckSinceMs(): number | null {
    return this.#isBlocked ? this.#progressMs : null
  }

  send(piece: Uint8Array): void {
    if (this.#isOver) return
    this.#pieces.push(piece)
    if (!this.#isBlocked) this.#flush()
  }

  /** @param isBroken the body is not complete: the client sees it, because its end is missing */
  end(isBroken: boolean): void {
    if (this.#isOver) return
    this.forget()
    if (isBroken) this.#res.close()
    else {
      // The library closes a connection on which nothing happens.
      if (this.#isLast) this.#res.pause()
      // Without the flag that closes: the library would write its `connection: close` into the body, after the last chunk.
      this.#res.cork(() => this.#res.end())
    }
  }

  cutOff(): void {
    this.end(true)
  }

  /** The connection is gone. */
  forget(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#pieces.length = 0
    unwatch(this)
    this.#onGone()
  }

  #flush(): void {
    while (this.#pieces.length > 0 && !this.#isBlocked && !this.#isOver) {
      const piece = this.#pieces[0]!
      const part = piece.subarray(0, MAX_WRITE_BYTES)
      if (part.byteLength === piece.byteLength) this.#pieces.shift()
      else this.#pieces[0] = piece.subarray(MAX_WRITE_BYTES)
      this.#res.cork(() => {
        this.#isBlocked = !this.#res.write(part as Uint8Array<ArrayBuffer>)
      })
      if (this.#isBlocked) this.#takenBytes += part.byteLength
      else this.#flushed(part.byteLength)
    }
  }

  /** Reports once for what leaves in one turn of the loop: each report is a frame. */
  #flushed(bytes: number): void {
    this.#progressMs = steadyMs()
    this.#unreportedBytes += bytes
    if (this.#willReport) return
    this.#willReport = true
    setImmediate(() => {
      this.#willReport = false
      if (this.#isOver) return
      this.#onFlushed(this.#unreportedBytes)
      this.#unreportedBytes = 0
    })
  }
}

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
