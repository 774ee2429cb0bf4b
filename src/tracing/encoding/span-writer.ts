import { createRing, maxFrameBytes, RingProducer } from '../../transport/memory/spsc-ring.ts'
import { writeScope, writeSpan } from './otlp.ts'
import { ProtoWriter } from './proto-writer.ts'
import { serializeSpan } from './serialized-span.ts'
import { RUNTIME_SCOPE, type SpanRecord } from './span-record.ts'

/** Bytes for ended spans of one thread that were not fetched yet: about 12,000 spans. */
export const SPAN_RING_BYTES = 4 << 20
/**
 * The kind of a frame in this ring is the length in bytes of the encoded scope, which precedes the span's fields. This kind says that
 * there is none: the span has the runtime's scope. The id of a frame is the number of spans that its thread has lost so far.
 */
export const WITHOUT_SCOPE = -1

export const createSpanRing = (): SharedArrayBuffer => createRing(SPAN_RING_BYTES)

/**
 * Writes the ended spans of a thread into its ring, in the form in which they are sent. They are in shared memory from then on, so they
 * outlive their thread. The exporting thread polls the ring; when it is late and the ring is full, spans are dropped and counted.
 */
export class SpanWriter {
  /** True: spans will be printed and not sent, so they are written in Node's serialization and not in OTLP. */
  readonly isForConsole: boolean
  readonly #ring: RingProducer
  readonly #fields = new ProtoWriter()
  #lost = 0

  constructor(memory: SharedArrayBuffer, isForConsole: boolean) {
    this.isForConsole = isForConsole
    this.#ring = new RingProducer(memory)
  }

  /** Drops a span that has ended. */
  lose(): void {
    this.#lost++
  }

  /** Never throws: a plugin may have given a span something that cannot be encoded, but `end` must not throw for that. */
  write(span: SpanRecord): void {
    const fields = this.begin()
    if (fields === null) return
    let scopeBytes = WITHOUT_SCOPE
    try {
      if (this.isForConsole) fields.raw(serializeSpan(span))
      else {
        if (span.scope !== RUNTIME_SCOPE) {
          writeScope(fields, span.scope)
          scopeBytes = fields.length
        }
        writeSpan(fields, span)
      }
    } catch {
      return this.lose()
    }
    this.commit(scopeBytes)
  }

  /** A writer for the fields of a span; call `commit` afterwards. Null when there is no room, so that a span that is dropped is not encoded. */
  begin(): ProtoWriter | null {
    if (this.#ring.usedBytes > FULL_BYTES) {
      this.#lost++
      return null
    }
    this.#fields.clear()
    return this.#fields
  }

  commit(scopeBytes: number = WITHOUT_SCOPE): void {
    const { bytes, length } = this.#fields
    const at = length > MAX_BYTES ? -1 : this.#ring.reserve(length)
    if (at < 0) {
      this.#lost++
      return
    }
    bytes.copy(this.#ring.bytes, at, 0, length)
    this.#ring.commit(length, scopeBytes, this.#lost)
  }
}

const FULL_BYTES = SPAN_RING_BYTES - 16_384
const MAX_BYTES = maxFrameBytes(SPAN_RING_BYTES)
