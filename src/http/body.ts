import type { HttpResponse } from 'uWebSockets.js'
import type { Exchange } from './exchange.ts'

/**
 * A body has this long, and a second more for each 16 KiB that have come. Less than the 8 s after which the library may close a slow
 * connection by itself: it would do so without an answer.
 */
export const BODY_TIMEOUT_MS = 7_000
const BODY_MIN_BYTES_PER_SEC = 16_384
/**
 * A refused body of at most this length is let in and dropped by the library: a client whose connection is closed while it sends
 * gets a reset, and never sees the 413. A chunked one is dropped to its end; the library closes when it comes too slowly.
 */
export const DROPPED_BODY_MAX_BYTES = 64 << 20

/** Bodies that have begun and not ended: the sweep looks here for those that are too slow. */
export class PendingBodies {
  readonly #pending = new Set<PendingBody>()

  get size(): number {
    return this.#pending.size
  }

  /**
   * Collects a body of at most `limitBytes` and hands it over; answers 413 or 408 itself.
   * @param expectedBytes the content length, or null for a chunked body
   */
  collect(
    res: HttpResponse,
    exchange: Exchange,
    expectedBytes: number | null,
    limitBytes: number,
    done: (body: Uint8Array) => void,
  ): void {
    let pending: PendingBody | null = null
    const handOver = (body: Uint8Array): void => {
      // The library reads chunks so loosely that nobody can say where the body ended: what comes behind it is not to be trusted.
      exchange.isLast = expectedBytes === null
      try {
        done(body)
      } catch {
        // Nothing may be thrown into the library: it would end the process.
        exchange.fail('HTTP_INTERNAL')
      }
    }
    res.onData((chunk, isLast) => {
      if (exchange.isDone) return
      if (pending === null && isLast && chunk.byteLength <= limitBytes) {
        // The whole body at once: it is copied into a lane's ring before the callback returns, or by whoever keeps it.
        return handOver(new Uint8Array(chunk))
      }
      if (pending === null) {
        pending = { exchange, chunks: [], bytes: 0, startedMs: Date.now() }
        this.#pending.add(pending)
        exchange.onAbort(() => this.#pending.delete(pending!))
      }
      pending.bytes += chunk.byteLength
      if (pending.bytes > limitBytes) {
        this.#pending.delete(pending)
        return exchange.fail('HTTP_BODY_TOO_LARGE', `The request body is larger than ${limitBytes} bytes`)
      }
      // The library takes the memory back when this returns.
      if (chunk.byteLength > 0) pending.chunks.push(Buffer.from(Buffer.from(chunk)))
      if (!isLast) return
      this.#pending.delete(pending)
      const whole = Buffer.concat(pending.chunks)
      if (expectedBytes !== null && whole.byteLength !== expectedBytes) return exchange.close()
      handOver(whole)
    })
  }

  expire(nowMs: number): void {
    for (const pending of this.#pending) {
      const allowedMs = BODY_TIMEOUT_MS + (pending.bytes / BODY_MIN_BYTES_PER_SEC) * 1000
      if (nowMs - pending.startedMs < allowedMs) continue
      this.#pending.delete(pending)
      pending.exchange.fail('HTTP_REQUEST_TIMEOUT', undefined, true)
    }
  }
}

interface PendingBody {
  readonly exchange: Exchange
  readonly chunks: Buffer[]
  bytes: number
  readonly startedMs: number
}
