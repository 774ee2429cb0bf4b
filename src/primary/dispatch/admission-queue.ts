import { steadyMs } from '../../core/schedule/steady-time.ts'
import type { RequestFrame } from '../../transport/frames/request-frame.ts'
import type { Exchange } from '../http/exchange.ts'
import { RequestStore } from './request-store.ts'

/** Requests that wait at most. */
export const WAITING_MAX_REQUESTS = 8_192
/** Length of their texts and bodies at most. */
export const WAITING_MAX_BYTES = 16 << 20
/** A power of two. The slot of a request that has left is used again when all before it have left, too. */
const SLOTS = 2 * WAITING_MAX_REQUESTS
const NO_NUMBERS = new Int32Array(0)

/**
 * Requests that no lane had room for, the longest waiting first. A request leaves as soon as its client is gone or its time is up.
 * Nothing is allocated for a request: with some thousands of them, the collector would copy that again and again.
 */
export class AdmissionQueue {
  /** The holder's lane number: this is no lane. */
  readonly index = -1
  /** The requests with the ids from `#head` to `#tail`, by slot: null for those that have left. Made with the first one. */
  #exchanges: (Exchange | null)[] = []
  #routeNumbers = NO_NUMBERS
  #bytes = NO_NUMBERS
  /** By `steadyMs`, as the deadline of the exchange is. */
  #sinceMs = new Float64Array(0)
  #store = new RequestStore(0)
  /** Id of the longest waiting; `#tail` when there is none. */
  #head = 0
  #tail = 0
  #allBytes = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Requests that it has room for, unless they are large. */
  get free(): number {
    return Math.min(WAITING_MAX_REQUESTS - this.#size, SLOTS - (this.#tail - this.#head))
  }

  /** Adds a copy of a request. False when there is no room for it. */
  tryAdd(frame: RequestFrame, exchange: Exchange): boolean {
    const bytes = frame.text.length + (frame.body === null ? 0 : frame.body.byteLength)
    if (this.free === 0 || this.#allBytes + bytes > WAITING_MAX_BYTES) return false
    if (this.#exchanges.length === 0) this.#makeSlots()
    const slot = this.#tail & (SLOTS - 1)
    this.#store.put(slot, frame)
    this.#exchanges[slot] = exchange
    this.#routeNumbers[slot] = frame.routeNumber
    this.#bytes[slot] = bytes
    this.#sinceMs[slot] = steadyMs()
    this.#allBytes += bytes
    this.#size++
    exchange.assignTo(this, this.#tail++)
    return true
  }

  #makeSlots(): void {
    this.#exchanges = new Array<Exchange | null>(SLOTS).fill(null)
    this.#routeNumbers = new Int32Array(SLOTS)
    this.#bytes = new Int32Array(SLOTS)
    this.#sinceMs = new Float64Array(SLOTS)
    this.#store = new RequestStore(SLOTS)
  }

  // ── those that wait ───────────────────────────────────────────────────────

  /** Id of the longest waiting; -1 when there is none. */
  get first(): number {
    return this.#size === 0 ? -1 : this.#head
  }

  /** Id of the next one; -1 when there is none. The one before may have left meanwhile. */
  after(id: number): number {
    for (let next = Math.max(id + 1, this.#head); next < this.#tail; next++) {
      if (this.#exchanges[next & (SLOTS - 1)] !== null) return next
    }
    return -1
  }

  exchangeOf(id: number): Exchange {
    return this.#exchanges[id & (SLOTS - 1)]!
  }

  routeNumberOf(id: number): number {
    return this.#routeNumbers[id & (SLOTS - 1)]!
  }

  sinceMsOf(id: number): number {
    return this.#sinceMs[id & (SLOTS - 1)]!
  }

  /** Length of the request as a lane reads it. */
  lengthOf(id: number): number {
    return this.#store.lengthOf(id & (SLOTS - 1))
  }

  /** Writes the request as a lane reads it. @param at offset in bytes, aligned to words */
  copyTo(id: number, to: Int32Array, at: number): void {
    this.#store.copyTo(id & (SLOTS - 1), to, at)
  }

  remove(id: number): void {
    const slot = id & (SLOTS - 1)
    if (id < this.#head || id >= this.#tail || this.#exchanges[slot] === null) return
    this.#exchanges[slot] = null
    this.#store.remove(slot)
    this.#allBytes -= this.#bytes[slot]!
    this.#size--
    while (this.#head < this.#tail && this.#exchanges[this.#head & (SLOTS - 1)] === null) this.#head++
  }

  /** The client is gone, or the time is up. */
  cancelRequest(id: number): void {
    this.remove(id)
  }

  /** Answers the requests whose time is up. */
  expire(nowMs: number): void {
    for (let id = this.first; id !== -1; id = this.after(id)) {
      const exchange = this.exchangeOf(id)
      if (exchange.deadlineMs !== 0 && exchange.deadlineMs <= nowMs) exchange.expire()
    }
  }
}
