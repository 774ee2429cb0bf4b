import { type Context, createTraceState, ROOT_CONTEXT, type SpanContext, TraceFlags, trace } from '@opentelemetry/api'
import type { OpenSpan, TraceScope } from '../../contracts/tracing.ts'
import { type Carrier, isSampled, NO_CARRIER, spanIdOf, traceIdOf, tracestateOf } from '../../core/causality/carrier.ts'

/** A place in a trace as this thread has it: the context of the API, and whether spans are made under it. */
export interface ThreadScope extends TraceScope {
  readonly context: Context
  readonly isSampled: boolean
}

/** The scope of whatever a plugin makes active by the API. */
export class ContextScope implements ThreadScope {
  readonly context: Context
  readonly isSampled: boolean
  #carrier: Carrier | undefined

  constructor(context: Context) {
    this.context = context
    const spanContext = trace.getSpanContext(context)
    this.isSampled = spanContext !== undefined && (spanContext.traceFlags & TraceFlags.SAMPLED) !== 0
  }

  get carrier(): Carrier {
    this.#carrier ??= carrierOfSpan(trace.getSpanContext(this.context))
    return this.#carrier
  }
}

/** Under a span that is not sampled: nothing is recorded, and what is called from here knows. */
export class PassingScope implements ThreadScope, OpenSpan {
  readonly carrier: Carrier
  readonly isSampled = false
  #context: Context | undefined

  constructor(carrier: Carrier) {
    this.carrier = carrier
  }

  get context(): Context {
    this.#context ??= remoteContext(this.carrier)
    return this.#context
  }

  end(): void {}
  fail(): void {}
}

/** The context of a span elsewhere. */
export function remoteContext(carrier: Carrier): Context {
  if (carrier === NO_CARRIER) return ROOT_CONTEXT
  const tracestate = tracestateOf(carrier)
  const spanContext: SpanContext = {
    traceId: traceIdOf(carrier),
    spanId: spanIdOf(carrier),
    traceFlags: isSampled(carrier) ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  }
  if (tracestate !== '') spanContext.traceState = createTraceState(tracestate)
  return trace.setSpanContext(ROOT_CONTEXT, spanContext)
}

export function carrierOfSpan(spanContext: SpanContext | undefined): Carrier {
  if (spanContext === undefined) return NO_CARRIER
  const { traceId, spanId, traceFlags, traceState } = spanContext
  const flags = (traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
  const traceparent = `00-${traceId}-${spanId}-${flags}`
  return traceState === undefined ? traceparent : traceparent + traceState.serialize()
}
