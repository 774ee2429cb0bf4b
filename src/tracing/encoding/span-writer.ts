import { createRing, maxFrameBytes, RingProducer } from '../../transport/memory/spsc-ring.ts'
import { SCOPE_SPANS, writeScope, writeSpan } from './otlp.ts'
import { ProtoWriter } from './proto-writer.ts'
import { RUNTIME_SCOPE, type SpanRecord, type SpanRecordScope } from './span-record.ts'

/** Ended spans of one thread that nobody has fetched yet, bytes: about 12,000. */
export const SPAN_RING_BYTES = 4 << 20
/**
 * Kinds of frames in this ring: a span's fields as OTLP has them, and the same with its scope in front, where that is not the runtime's. A
 * frame's id is the number of spans that its thread has lost so far.
 */
export const SPAN_FRAME = 1
export const SCOPED_SPAN_FRAME = 2

export const createSpanRing = (): SharedArrayBuffer => createRing(SPAN_RING_BYTES)

/**
 * Where a thread leaves its ended spans, in the form in which they are sent. They are in shared memory from then on: the thread may die of
 * whatever comes next. The exporting thread looks for itself; where it is late and the ring is full, spans are lost, and counted.
 */
export class SpanWriter {
  readonly #ring: RingProducer
  readonly #fields = new ProtoWriter()
  #lost = 0

  constructor(memory: SharedArrayBuffer) {
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
    const isOwn = span.scope === RUNTIME_SCOPE
    try {
      if (!isOwn) writeScopeField(fields, span.scope)
      writeSpan(fields, span)
    } catch {
      return this.lose()
    }
    this.commit(isOwn ? SPAN_FRAME : SCOPED_SPAN_FRAME)
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

  commit(kind: number = SPAN_FRAME): void {
    const { bytes, length } = this.#fields
    const at = length > MAX_BYTES ? -1 : this.#ring.reserve(length)
    if (at < 0) {
      this.#lost++
      return
    }
    bytes.copy(this.#ring.bytes, at, 0, length)
    this.#ring.commit(length, kind, this.#lost)
  }
}

function writeScopeField(to: ProtoWriter, scope: SpanRecordScope): void {
  const mark = to.begin(SCOPE_SPANS.scope)
  writeScope(to, scope)
  to.end(mark)
}

const FULL_BYTES = SPAN_RING_BYTES - 16_384
const MAX_BYTES = maxFrameBytes(SPAN_RING_BYTES)
