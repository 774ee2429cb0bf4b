import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { Exchange } from '../http/exchange.ts'

/** Requests that wait at most. */
export const WAITING_MAX_REQUESTS = 8_192
/** Length of their texts and bodies at most. */
export const WAITING_MAX_BYTES = 16 << 20

interface Waiting {
  readonly frame: RequestFrame
  readonly exchange: Exchange
  readonly bytes: number
}

/** Requests that no lane had room for, the longest waiting first. One leaves as soon as nobody waits for its answer. */
export class AdmissionQueue {
  /** No lane has them. */
  readonly index = -1
  /** A map, for those in the middle leave too. */
  readonly #waiting = new Map<number, Waiting>()
  #bytes = 0
  #lastTicket = 0

  get size(): number {
    return this.#waiting.size
  }

  /** Requests that it has room for, unless they are large. */
  get free(): number {
    return WAITING_MAX_REQUESTS - this.#waiting.size
  }

  /** False when there is no room for it here either. */
  enter(frame: RequestFrame, exchange: Exchange): boolean {
    const bytes = frame.text.length + (frame.body === null ? 0 : frame.body.byteLength)
    if (this.#waiting.size >= WAITING_MAX_REQUESTS || this.#bytes + bytes > WAITING_MAX_BYTES) return false
    // The memory of a body is lent by whoever received it.
    if (frame.body !== null) frame.body = Buffer.from(frame.body)
    const ticket = ++this.#lastTicket
    this.#waiting.set(ticket, { frame, exchange, bytes })
    this.#bytes += bytes
    exchange.place(this, ticket)
    return true
  }

  /** The ticket and the request of all who wait. They may leave meanwhile. */
  [Symbol.iterator](): IterableIterator<[number, Waiting]> {
    return this.#waiting.entries()
  }

  leave(ticket: number): void {
    const waiting = this.#waiting.get(ticket)
    if (waiting === undefined) return
    this.#waiting.delete(ticket)
    this.#bytes -= waiting.bytes
  }

  /** Its client is gone, or its time is up. */
  cancelRequest(ticket: number): void {
    this.leave(ticket)
  }

  /** Answers those whose time is up. */
  expire(nowMs: number): void {
    for (const { exchange } of this.#waiting.values()) {
      if (exchange.deadlineMs !== 0 && exchange.deadlineMs <= nowMs) exchange.expire()
    }
  }
}
