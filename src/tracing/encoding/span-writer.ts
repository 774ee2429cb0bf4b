import type { SpanAttributes } from '../../contracts/tracing.ts'
import type { WideFrameBuffer } from '../../transport/frames/frame-buffer.ts'
import { createRing, maxFrameBytes, RING_DATA_BYTE, RingProducer } from '../../transport/memory/spsc-ring.ts'
import { writeScope, writeSpan } from './otlp.ts'
import { ProtoWriter } from './proto-writer.ts'
import { serializeSpan } from './serialized-span.ts'
import { SharedFields } from './shared-fields.ts'
import { NO_TEXTS, type OwnTexts, shortMaxBytes, textOfShort, writeShort } from './short-span.ts'
import { RUNTIME_SCOPE, type SpanPlace, type SpanRecord } from './span-record.ts'

/** Bytes for ended spans of one thread that were not fetched yet: about 12,000 spans. */
export const SPAN_RING_BYTES = 4 << 20
/**
 * The kind of a frame in this ring is the length in bytes of the encoded scope, which precedes the span's fields. This kind says that
 * there is none: the span has the runtime's scope. The id of a frame is the number of spans that its thread has lost so far.
 */
export const WITHOUT_SCOPE = -1
/** The kind of a frame with a short span (short-span.ts), which has the runtime's scope. */
export const SHORT = -2

export const createSpanRing = (): SharedArrayBuffer => createRing(SPAN_RING_BYTES)

/**
 * Writes the ended spans of a thread into its ring, in the form in which they are sent. They are in shared memory from then on, so they
 * outlive their thread. The exporting thread polls the ring; when it is late and the ring is full, spans are dropped and counted.
 */
export class SpanWriter {
  /** True: spans will be printed and not sent, so they are written in Node's serialization and not in OTLP. */
  readonly isForConsole: boolean
  readonly #ring: RingProducer
  readonly #memory: WideFrameBuffer
  readonly #fields = new ProtoWriter()
  readonly #shared = new SharedFields()
  #lost = 0

  constructor(memory: SharedArrayBuffer, isForConsole: boolean) {
    this.isForConsole = isForConsole
    const ring = new RingProducer(memory)
    this.#ring = ring
    this.#memory = { bytes: ring.bytes, words: ring.words, doubles: new Float64Array(memory, RING_DATA_BYTE) }
  }

  /** Drops a span that has ended. */
  lose(): void {
    this.#lost++
  }

  /** Never throws: a plugin may have given a span something that cannot be encoded, but `end` must not throw for that. */
  write(span: SpanRecord): void {
    // A span that is dropped is not encoded.
    if (this.#ring.usedBytes > FULL_BYTES) return this.lose()
    const fields = this.#fields
    fields.clear()
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
    this.#commit(scopeBytes)
  }

  /**
   * Writes a span in the short form, which is for spans that are sent.
   * @param first encoded fields that it has in common with others, like `second`, which may be empty
   */
  writeShort(place: SpanPlace, first: Uint8Array, second: Uint8Array, texts: OwnTexts): void {
    const text = textOfShort(place, texts)
    const maxBytes = shortMaxBytes(text, first.length + second.length)
    const at = maxBytes > MAX_BYTES ? -1 : this.#ring.reserve(maxBytes)
    if (at < 0) return this.lose()
    const bytes = writeShort(this.#memory, at, place, texts, text, first, second)
    this.#ring.commit(bytes, SHORT, this.#lost)
  }

  /** Writes a span of which nothing is unusual, in the short form. @param attributes one object for many spans */
  writeShared(span: SpanRecord, attributes: SpanAttributes): void {
    this.writeShort(span, this.#shared.of(attributes, span.name, span.kind), NOTHING, NO_TEXTS)
  }

  #commit(scopeBytes: number): void {
    const { bytes, length } = this.#fields
    const at = length > MAX_BYTES ? -1 : this.#ring.reserve(length)
    if (at < 0) return this.lose()
    bytes.copy(this.#ring.bytes, at, 0, length)
    this.#ring.commit(length, scopeBytes, this.#lost)
  }
}

const NOTHING = new Uint8Array()
const FULL_BYTES = SPAN_RING_BYTES - 16_384
const MAX_BYTES = maxFrameBytes(SPAN_RING_BYTES)
