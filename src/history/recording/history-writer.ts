import { withoutSecretTexts } from '../../core/schemas/secret-texts.ts'
import { createRing, maxFrameBytes, RingProducer } from '../../transport/memory/spsc-ring.ts'
import type { HistoryEntry } from '../entries.ts'

/** Bytes for entries of one thread that were not fetched yet. */
const RING_BYTES = 1 << 20
const MAX_BYTES = maxFrameBytes(RING_BYTES)
/** A ring with less room takes nothing more, so that what would not fit is not encoded. */
const FULL_BYTES = RING_BYTES - 16_384

export const createHistoryRing = (): SharedArrayBuffer => createRing(RING_BYTES)

/**
 * Writes the entries of a thread into its ring, where they outlive the thread. The history's thread polls the ring; when it is late and
 * the ring is full, entries are dropped and counted: the id of a frame is the number of those that its thread has dropped so far.
 */
export class HistoryWriter {
  readonly #ring: RingProducer
  #dropped = 0

  constructor(memory: SharedArrayBuffer) {
    this.#ring = new RingProducer(memory)
  }

  /** Never throws, whatever a plugin has thrown, logged or given to a tool: what cannot be read is dropped. @param make not called where there is no room */
  write(make: () => HistoryEntry): void {
    if (this.#ring.usedBytes > FULL_BYTES) {
      this.#dropped++
      return
    }
    const text = textOf(make)
    const length = text === null ? 0 : Buffer.byteLength(text)
    const at = text === null || length > MAX_BYTES ? -1 : this.#ring.reserve(length)
    if (at < 0) {
      this.#dropped++
      return
    }
    this.#ring.bytes.utf8Write(text!, at, length)
    this.#ring.commit(length, 0, this.#dropped)
  }
}

function textOf(make: () => HistoryEntry): string | null {
  try {
    return withoutSecretTexts(JSON.stringify(make()))
  } catch {
    return null
  }
}
