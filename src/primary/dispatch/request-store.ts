import type { FrameBuffer } from '../../transport/frames/frame-buffer.ts'
import { type RequestFrame, requestMaxBytes, writeRequest } from '../../transport/frames/request-frame.ts'
import type { RawBuffer } from '../../transport/memory/raw-buffer.ts'

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
