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

/** A request as a lane reads it, in memory outside of the heap. */
export interface StoredRequest {
  readonly routeNumber: number
  readonly chunk: Chunk
  /** Where it is in the chunk. */
  readonly at: number
  readonly bytes: number
}

/**
 * Memory for requests that wait. Kept as objects, the texts of thousands of them outlive the young generation: the collector would copy
 * each of them twice, and move it to the old generation then.
 */
export class RequestStore {
  #chunk: Chunk | null = null
  /** The last chunk that was emptied: where requests leave in their order, the next one that is needed. */
  #spare: Chunk | null = null

  /** Copies a request, with its body. */
  add(frame: RequestFrame): StoredRequest {
    const maxBytes = requestMaxBytes(frame)
    const chunk = maxBytes > SHARED_MAX_BYTES ? chunkOf(maxBytes) : this.#chunkFor(maxBytes)
    const at = chunk.usedBytes
    const bytes = writeRequest(chunk, at, frame)
    chunk.usedBytes += align8(bytes)
    chunk.requests++
    return { routeNumber: frame.routeNumber, chunk, at, bytes }
  }

  /** Gives its memory back. Called once. */
  remove({ chunk }: StoredRequest): void {
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
