import { createRing, maxFrameBytes, RingProducer } from '../../transport/memory/spsc-ring.ts'
import { writeScope, writeSpan } from './otlp.ts'
import { ProtoWriter } from './proto-writer.ts'
import { serializeSpan } from './serialized-span.ts'
import { RUNTIME_SCOPE, type SpanRecord } from './span-record.ts'

/** Ended spans of one thread that nobody has fetched yet, bytes: about 12,000. */
export const SPAN_RING_BYTES = 4 << 20
/**
 * The kind of a frame in this ring is the length in bytes of the span's scope, which stands in front of the span's fields; this one: the
 * scope is the runtime's and does not stand there. The id of a frame is the number of spans that its thread has lost so far.
 */
export const WITHOUT_SCOPE = -1

export const createSpanRing = (): SharedArrayBuffer => createRing(SPAN_RING_BYTES)

/**
 * Where a thread leaves its ended spans, in the form in which they are sent. They are in shared memory from then on: the thread may die of
 * whatever comes next. The exporting thread looks for itself; where it is late and the ring is full, spans are lost, and counted.
 */
export class SpanWriter {
  /** True: spans are printed and not sent, so they are left serialized and not in OTLP. */
  readonly isForConsole: boolean
  readonly #ring: RingProducer
  readonly #fields = new ProtoWriter()
  #lost = 0

  constructor(memory: SharedArrayBuffer, isForConsole: boolean) {
    this.isForConsole = isForConsole
    this.#ring = new RingProducer(memory)
  }

  /** A span that has ended is given up. */
  lose(): void {
    this.#lost++
  }

  /** Never throws: a plugin may have given a span what cannot be encoded, and is not to hear of that by an exception from `end`. */
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

  /** Where the fields of a span go, to be followed by `commit`; null when there is no room: what is lost is not worth encoding. */
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
