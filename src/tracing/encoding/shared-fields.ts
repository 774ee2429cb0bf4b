import type { SpanAttributes } from '../../contracts/tracing.ts'
import { cut, KIND_OFFSET, SPAN, writeAttributes } from './otlp.ts'
import { ProtoWriter } from './proto-writer.ts'

interface Shared {
  readonly attributes: SpanAttributes | null
  readonly name: string
  readonly kind: number
  readonly fields: Uint8Array
}

/** The encoded name, kind and attributes of spans that share one object of attributes: those of a route's handler, or of a tool's method. */
export class SharedFields {
  readonly #scratch = new ProtoWriter()
  readonly #known = new WeakMap<SpanAttributes, Shared>()
  #last: Shared = { attributes: null, name: '', kind: 0, fields: new Uint8Array() }

  /** @param attributes neither it nor what it has is modified later */
  of(attributes: SpanAttributes, name: string, kind: number): Uint8Array {
    // The same handler often runs again.
    let shared = this.#last
    if (shared.attributes !== attributes) {
      shared = this.#known.get(attributes) ?? this.#encode(attributes, name, kind)
      this.#last = shared
    }
    if (shared.name !== name || shared.kind !== kind) shared = this.#encode(attributes, name, kind)
    return shared.fields
  }

  #encode(attributes: SpanAttributes, name: string, kind: number): Shared {
    const to = this.#scratch
    to.clear()
    to.text(SPAN.name, cut(name))
    to.number(SPAN.kind, kind + KIND_OFFSET)
    writeAttributes(to, SPAN.attributes, attributes)
    const shared = { attributes, name, kind, fields: to.copy() }
    this.#known.set(attributes, shared)
    return shared
  }
}
