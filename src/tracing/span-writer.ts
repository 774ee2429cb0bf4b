import { createRing, maxFrameBytes, RingProducer } from '../shm/spsc-ring.ts'
import { encodeSpan, type SpanRecord } from './span-record.ts'

/** Ended spans of one thread that nobody has fetched yet, bytes: about 2,000. */
export const SPAN_RING_BYTES = 1 << 20
/** The kind of frame in this ring; a frame's id is the number of spans that its thread has lost so far. */
export const SPAN_FRAME = 1

export const createSpanRing = (): SharedArrayBuffer => createRing(SPAN_RING_BYTES)

/**
 * Where a thread leaves its ended spans. They are in shared memory from then on: the thread may die of whatever comes next.
 * The exporting thread looks for itself; where it is late and the ring is full, spans are lost, and counted.
 */
export class SpanWriter {
  readonly #ring: RingProducer
  #lost = 0

  constructor(memory: SharedArrayBuffer) {
    this.#ring = new RingProducer(memory)
  }

  /** A span that has ended is given up. */
  lose(): void {
    this.#lost++
  }

  /** To be asked before a span is put into words: what has no room is not worth them. */
  get hasRoom(): boolean {
    return this.#ring.usedBytes <= FULL_BYTES
  }

  write(span: SpanRecord): void {
    if (this.hasRoom) this.writeText(encodeSpan(span))
    else this.#lost++
  }

  /** @param text as `encodeSpan` makes it */
  writeText(text: string): void {
    const maxBytes = text.length * 3 <= MAX_BYTES ? text.length * 3 : Buffer.byteLength(text)
    const at = maxBytes > MAX_BYTES ? -1 : this.#ring.reserve(maxBytes)
    if (at < 0) {
      this.#lost++
      return
    }
    this.#ring.commit(this.#ring.bytes.utf8Write(text, at), SPAN_FRAME, this.#lost)
  }
}

const FULL_BYTES = SPAN_RING_BYTES - 16_384
const MAX_BYTES = maxFrameBytes(SPAN_RING_BYTES)
