// Requests that wait for a lane, outside of the heap.

import { steadyMs } from '../../core/schedule/clock.ts'
import type { FrameBuffer } from '../../transport/frames/frames.ts'
import { type RequestFrame, requestMaxBytes, writeRequest } from '../../transport/frames/request-frame.ts'
import type { RawBuffer } from '../../transport/memory/spsc-ring.ts'
import type { Exchange } from '../http/exchange.ts'

/** Memory that is taken at a time: about 300 requests with a browser's headers. */
const CHUNK_BYTES = 256 * 1024
/** A request that may be longer has a chunk of its own. */
const SHARED_MAX_BYTES = CHUNK_BYTES / 4

interface Chunk extends FrameBuffer {
  usedBytes: number
  /** Requests in it. */
  requests: number
}

/**
 * Requests that wait, as a lane reads them: by slot, in memory outside of the heap. Kept as objects, the texts of thousands of them outlive
 * the young generation: the collector would copy each of them, and then once more, into the old generation.
 */
export class RequestStore {
  readonly #chunks: (Chunk | null)[]
  /** Where it is in its chunk. */
  readonly #offsets: Int32Array
  readonly #lengths: Int32Array
  #chunk: Chunk | null = null
  /** The last chunk that was emptied: where requests leave in their order, the next one that is needed. */
  #spare: Chunk | null = null

  constructor(slots: number) {
    this.#chunks = new Array<Chunk | null>(slots).fill(null)
    this.#offsets = new Int32Array(slots)
    this.#lengths = new Int32Array(slots)
  }

  /** Copies a request, with its body, into a slot that is free. */
  put(slot: number, frame: RequestFrame): void {
    const maxBytes = requestMaxBytes(frame)
    const chunk = maxBytes > SHARED_MAX_BYTES ? chunkOf(maxBytes) : this.#chunkFor(maxBytes)
    const bytes = writeRequest(chunk, chunk.usedBytes, frame)
    this.#chunks[slot] = chunk
    this.#offsets[slot] = chunk.usedBytes
    this.#lengths[slot] = bytes
    chunk.usedBytes += align8(bytes)
    chunk.requests++
  }

  lengthOf(slot: number): number {
    return this.#lengths[slot]!
  }

  /** @param at offset in bytes, aligned to words */
  copyTo(slot: number, to: Int32Array, at: number): void {
    const from = this.#chunks[slot]!.words
    const fromWord = this.#offsets[slot]! >> 2
    const toWord = at >> 2
    const words = (this.#lengths[slot]! + 3) >> 2
    // For a few hundred bytes a loop is faster than `set`, which needs an array of its own for the source.
    for (let word = 0; word < words; word++) to[toWord + word] = from[fromWord + word]!
  }

  /** Frees a slot that is in use. */
  remove(slot: number): void {
    const chunk = this.#chunks[slot]!
    this.#chunks[slot] = null
    if (--chunk.requests > 0) return
    chunk.usedBytes = 0
    if (chunk !== this.#chunk && chunk.bytes.byteLength === CHUNK_BYTES) this.#spare = chunk
  }

  #chunkFor(maxBytes: number): Chunk {
    if (this.#chunk !== null && this.#chunk.usedBytes + maxBytes <= CHUNK_BYTES) return this.#chunk
    this.#chunk = this.#spare ?? chunkOf(CHUNK_BYTES)
    this.#spare = null
    return this.#chunk
  }
}

function chunkOf(minBytes: number): Chunk {
  const memory = new ArrayBuffer(align8(minBytes))
  return { bytes: Buffer.from(memory) as RawBuffer, words: new Int32Array(memory), usedBytes: 0, requests: 0 }
}

const align8 = (bytes: number): number => (bytes + 7) & ~7

/** Requests that wait at most. */
export const WAITING_MAX_REQUESTS = 8_192
/** Length of all of them at most, as a lane reads them. */
export const WAITING_MAX_BYTES = 16 << 20
/** A power of two. The slot of a request that has left is used again when all before it have left, too. */
const SLOTS = 2 * WAITING_MAX_REQUESTS

/**
 * Requests that no lane had room for, the longest waiting first. A request leaves as soon as its client is gone or its time is up.
 * Nothing is allocated for a request: with some thousands of them, the collector would copy that again and again.
 */
export class AdmissionQueue {
  /** The holder's lane number: this is no lane. */
  readonly index = -1
  /** The requests with the ids from `#head` to `#tail`, by slot: null for those that have left. Made with the first one. */
  #exchanges: (Exchange | null)[] = []
  #routeNumbers = new Int32Array(0)
  /** By `steadyMs`, as the deadline of the exchange is. */
  #sinceMs = new Float64Array(0)
  #store = new RequestStore(0)
  /** Id of the longest waiting; `#tail` when there is none. */
  #head = 0
  #tail = 0
  #allBytes = 0
  size = 0

  /** Requests that it has room for, unless they are large. */
  get free(): number {
    return Math.min(WAITING_MAX_REQUESTS - this.size, SLOTS - (this.#tail - this.#head))
  }

  /** Adds a copy of a request. False when there is no room for it. */
  tryAdd(frame: RequestFrame, exchange: Exchange): boolean {
    const bytes = frame.text.length + (frame.body === null ? 0 : frame.body.byteLength)
    if (this.free === 0 || this.#allBytes + bytes > WAITING_MAX_BYTES) return false
    if (this.#exchanges.length === 0) {
      this.#exchanges = new Array<Exchange | null>(SLOTS).fill(null)
      this.#routeNumbers = new Int32Array(SLOTS)
      this.#sinceMs = new Float64Array(SLOTS)
      this.#store = new RequestStore(SLOTS)
    }
    const slot = this.#tail & (SLOTS - 1)
    this.#store.put(slot, frame)
    this.#exchanges[slot] = exchange
    this.#routeNumbers[slot] = frame.routeNumber
    this.#sinceMs[slot] = steadyMs()
    this.#allBytes += this.#store.lengthOf(slot)
    this.size++
    exchange.assignTo(this, this.#tail++)
    return true
  }

  // ── those that wait ───────────────────────────────────────────────────────

  /** Id of the longest waiting; -1 when there is none. */
  get first(): number {
    return this.size === 0 ? -1 : this.#head
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
    this.#allBytes -= this.#store.lengthOf(slot)
    this.#store.remove(slot)
    this.size--
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
