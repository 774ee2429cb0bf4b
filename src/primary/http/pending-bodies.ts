import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { Exchange } from './exchange.ts'
import type { ClientResponse } from './library.ts'

/**
 * A body has this long, and a second more for each 16 KiB that have come, milliseconds. Less than the 8 s after which the library may
 * close a slow connection by itself, without an answer.
 */
export const BODY_TIMEOUT_MS = 7_000
export const BODY_MIN_BYTES_PER_SEC = 16_384
/**
 * A refused body of at most this length is received and dropped by the library: a client whose connection is closed while it sends gets
 * a reset, and never sees the 413. A chunked body is dropped to its end; the library closes the connection when the body is too slow.
 */
export const DROPPED_BODY_MAX_BYTES = 64 << 20

/** Memory of all bodies that are being received, at most. A body that needs more is answered 503. */
export const BODIES_MAX_BYTES = 256 << 20
/** Memory for the first bytes of a body. A smaller body comes in one piece. */
const BODY_FIRST_BYTES = 4_096

const NO_BYTES = Buffer.alloc(0)

/** Bodies that are being received. The listener's sweep ends those that are too slow. */
export class PendingBodies {
  readonly #pending = new Set<PendingBody>()
  readonly #maxBytes: number
  #heldBytes = 0

  constructor(maxBytes = BODIES_MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  get size(): number {
    return this.#pending.size
  }

  /** Memory that the bodies have now. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /**
   * Collects a body of at most `limitBytes` and hands it over; answers 413, 408 or 503 itself.
   * @param expectedBytes the content length, or null for a chunked body
   */
  collect(
    res: ClientResponse,
    exchange: Exchange,
    expectedBytes: number | null,
    limitBytes: number,
    done: (body: Uint8Array) => void,
  ): void {
    // From the head on: the library's time runs from there, too.
    const pending = this.#begin(exchange)
    res.onData((chunk, isLast) => {
      if (exchange.isDone) return
      if (isLast && pending.length === 0 && chunk.byteLength <= limitBytes) {
        this.#drop(pending)
        // The whole body at once: it is copied into a lane's ring, or by its holder, before the callback returns.
        return this.#handOver(exchange, new Uint8Array(chunk), done)
      }
      const length = pending.length + chunk.byteLength
      if (length > limitBytes) {
        this.#drop(pending)
        return exchange.fail('HTTP_BODY_TOO_LARGE', `The request body is larger than ${limitBytes} bytes`)
      }
      if (!this.#reserve(pending, length, expectedBytes ?? limitBytes)) {
        this.#drop(pending)
        return exchange.fail('HTTP_OVERLOADED', undefined, true)
      }
      // The library reuses the memory when this returns.
      pending.bytes.set(new Uint8Array(chunk), pending.length)
      pending.length = length
      if (!isLast) return
      this.#drop(pending)
      if (expectedBytes !== null && length !== expectedBytes) return exchange.close()
      this.#handOver(exchange, pending.bytes.subarray(0, length), done)
    })
  }

  // A method: the transpiler names a function in a variable through defineProperty, for each body a microsecond.
  #handOver(exchange: Exchange, body: Uint8Array, done: (body: Uint8Array) => void): void {
    try {
      done(body)
    } catch {
      // Thrown into the library, the error would end the process.
      exchange.fail('HTTP_INTERNAL')
    }
  }

  expire(nowMs: number): void {
    for (const pending of this.#pending) {
      pending.exchange.look(nowMs)
      const allowedMs = BODY_TIMEOUT_MS + (pending.length / BODY_MIN_BYTES_PER_SEC) * 1000
      if (nowMs - pending.startedMs < allowedMs) continue
      this.#drop(pending)
      pending.exchange.fail('HTTP_REQUEST_TIMEOUT', undefined, true)
    }
  }

  #begin(exchange: Exchange): PendingBody {
    const pending = { exchange, bytes: NO_BYTES, length: 0, startedMs: steadyMs() }
    this.#pending.add(pending)
    exchange.onAbort(() => this.#drop(pending))
    return pending
  }

  #drop(pending: PendingBody): void {
    if (this.#pending.delete(pending)) this.#heldBytes -= pending.bytes.byteLength
  }

  /**
   * Makes room for `length` bytes, doubling the memory up to `mostBytes`. One piece of memory, not a list of chunks: a client that sends
   * single bytes would cost a hundred bytes for each. False when there is no memory for it.
   */
  #reserve(pending: PendingBody, length: number, mostBytes: number): boolean {
    const before = pending.bytes
    if (length <= before.byteLength) return true
    const doubled = Math.max(2 * before.byteLength, BODY_FIRST_BYTES)
    const capacity = Math.max(Math.min(doubled, mostBytes), length)
    if (this.#heldBytes + capacity - before.byteLength > this.#maxBytes) return false
    this.#heldBytes += capacity - before.byteLength
    pending.bytes = Buffer.allocUnsafeSlow(capacity)
    pending.bytes.set(before.subarray(0, pending.length))
    return true
  }
}

interface PendingBody {
  readonly exchange: Exchange
  /** The first `length` bytes have come. */
  bytes: Buffer
  length: number
  readonly startedMs: number
}
