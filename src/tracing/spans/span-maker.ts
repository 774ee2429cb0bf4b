import type { OpenSpan, SpanAttributes } from '../../contracts/tracing.ts'
import { randomHex } from '../../core/causality/ids.ts'
import {
  isSampled,
  NO_TRACE_CONTEXT,
  type TraceContext,
  traceIdOf,
  tracestateOf,
} from '../../core/causality/trace-context.ts'
import type { SpanWriter } from '../encoding/span-writer.ts'
import { RuntimeSpan } from './runtime-span.ts'
import type { TraceSampler } from './sampler.ts'
import { PassingScope, type ThreadScope } from './scope.ts'

/** A span of the runtime, or the scope that takes its place when it is not sampled. */
export type MadeSpan = OpenSpan & ThreadScope

/**
 * Begins the runtime's spans around code. A child follows its parent; where a trace begins the sampler decides. Where `areShared`, the object
 * of attributes is that of many spans.
 */
export class SpanMaker {
  readonly #writer: SpanWriter
  readonly #sampler: TraceSampler
  readonly #nowMs: () => number

  constructor(writer: SpanWriter, sampler: TraceSampler, nowMs: () => number) {
    this.#writer = writer
    this.#sampler = sampler
    this.#nowMs = nowMs
  }

  /** Begins a span below a scope of this thread; null begins a trace. */
  open(
    around: ThreadScope | null,
    name: string,
    kind: number,
    attributes: SpanAttributes,
    areShared: boolean,
  ): MadeSpan {
    return this.#open(around?.traceContext ?? NO_TRACE_CONTEXT, around, name, kind, attributes, areShared)
  }

  /** Begins a span below one of another thread or process; an empty trace context begins a trace. */
  openUnder(
    parent: TraceContext,
    name: string,
    kind: number,
    attributes: SpanAttributes,
    areShared: boolean,
  ): MadeSpan {
    if (parent !== NO_TRACE_CONTEXT && !isSampled(parent)) return new PassingScope(parent, this.#sampler)
    return this.#open(parent, null, name, kind, attributes, areShared)
  }

  #open(
    parent: TraceContext,
    around: ThreadScope | null,
    name: string,
    kind: number,
    attributes: SpanAttributes,
    areShared: boolean,
  ): MadeSpan {
    let traceContext: TraceContext
    if (parent === NO_TRACE_CONTEXT) {
      const traceId = randomHex(16)
      const isSampledHere = this.#sampler.samples(NO_TRACE_CONTEXT, traceId)
      traceContext = `00-${traceId}-${randomHex(8)}-0${isSampledHere ? 1 : 0}`
      if (!isSampledHere) return new PassingScope(traceContext, this.#sampler)
    } else traceContext = `00-${traceIdOf(parent)}-${randomHex(8)}-01${tracestateOf(parent)}`
    return new RuntimeSpan(this.#writer, this.#nowMs, {
      traceContext,
      parent,
      around,
      name,
      kind,
      attributes,
      areShared,
    })
  }
}
