import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { Exchange } from '../http/exchange.ts'
import { RequestStore, type StoredRequest } from './request-store.ts'

/** Requests that wait at most. */
export const WAITING_MAX_REQUESTS = 8_192
/** Length of their texts and bodies at most. */
export const WAITING_MAX_BYTES = 16 << 20

interface Waiting {
  readonly request: StoredRequest
  readonly exchange: Exchange
  readonly bytes: number
  /** By `steadyMs`, as the deadline of the exchange is. */
  readonly sinceMs: number
}

/** Requests that no lane had room for, the longest waiting first. A request leaves as soon as its client is gone or its time is up. */
export class AdmissionQueue {
  /** The holder's lane number: this is no lane. */
  readonly index = -1
  /** A map by id, because requests are removed from the middle too. */
  readonly #waiting = new Map<number, Waiting>()
  readonly #store = new RequestStore()
  #bytes = 0
  #lastId = 0

  get size(): number {
    return this.#waiting.size
  }

  /** Requests that it has room for, unless they are large. */
  get free(): number {
    return WAITING_MAX_REQUESTS - this.#waiting.size
  }

  /** Adds a copy of a request. False when there is no room for it. */
  tryAdd(frame: RequestFrame, exchange: Exchange): boolean {
    const bytes = frame.text.length + (frame.body === null ? 0 : frame.body.byteLength)
    if (this.#waiting.size >= WAITING_MAX_REQUESTS || this.#bytes + bytes > WAITING_MAX_BYTES) return false
    const id = ++this.#lastId
    this.#waiting.set(id, { request: this.#store.add(frame), exchange, bytes, sinceMs: steadyMs() })
    this.#bytes += bytes
    exchange.assignTo(this, id)
    return true
  }

  /** Ids and requests, the longest waiting first. Requests may be removed meanwhile. */
  [Symbol.iterator](): IterableIterator<[number, Waiting]> {
    return this.#waiting.entries()
  }

  remove(id: number): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    this.#store.remove(waiting.request)
    this.#bytes -= waiting.bytes
  }

  /** The client is gone, or the time is up. */
  cancelRequest(id: number): void {
    this.remove(id)
  }

  /** Answers the requests whose time is up. */
  expire(nowMs: number): void {
    for (const { exchange } of this.#waiting.values()) {
      if (exchange.deadlineMs !== 0 && exchange.deadlineMs <= nowMs) exchange.expire()
    }
  }
}
