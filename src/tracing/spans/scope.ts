import { type Context, createTraceState, ROOT_CONTEXT, type SpanContext, TraceFlags, trace } from '@opentelemetry/api'
import type { OpenSpan, TraceScope } from '../../contracts/tracing.ts'
import {
  isSampled,
  NO_TRACE_CONTEXT,
  spanIdOf,
  type TraceContext,
  traceIdOf,
  tracestateOf,
} from '../../core/causality/trace-context.ts'

/** A place in a trace as this thread has it: the context of the API, and whether spans are made under it. */
export interface ThreadScope extends TraceScope {
  readonly context: Context
  readonly isSampled: boolean
}

/** The scope of whatever a plugin makes active by the API. */
export class ContextScope implements ThreadScope {
  readonly context: Context
  readonly isSampled: boolean
  #traceContext: TraceContext | undefined

  constructor(context: Context) {
    this.context = context
    const spanContext = trace.getSpanContext(context)
    this.isSampled = spanContext !== undefined && (spanContext.traceFlags & TraceFlags.SAMPLED) !== 0
  }

  get traceContext(): TraceContext {
    this.#traceContext ??= traceContextOfSpan(trace.getSpanContext(this.context))
    return this.#traceContext
  }
}

/** Under a span that is not sampled: nothing is recorded, and what is called from here knows. */
export class PassingScope implements ThreadScope, OpenSpan {
  readonly traceContext: TraceContext
  readonly isSampled = false
  #context: Context | undefined

  constructor(traceContext: TraceContext) {
    this.traceContext = traceContext
  }

  get context(): Context {
    this.#context ??= remoteContext(this.traceContext)
    return this.#context
  }

  end(): void {}
  fail(): void {}
}

/** The context of a span elsewhere. */
export function remoteContext(traceContext: TraceContext): Context {
  if (traceContext === NO_TRACE_CONTEXT) return ROOT_CONTEXT
  const tracestate = tracestateOf(traceContext)
  const spanContext: SpanContext = {
    traceId: traceIdOf(traceContext),
    spanId: spanIdOf(traceContext),
    traceFlags: isSampled(traceContext) ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  }
  if (tracestate !== '') spanContext.traceState = createTraceState(tracestate)
  return trace.setSpanContext(ROOT_CONTEXT, spanContext)
}

export function traceContextOfSpan(spanContext: SpanContext | undefined): TraceContext {
  if (spanContext === undefined) return NO_TRACE_CONTEXT
  const { traceId, spanId, traceFlags, traceState } = spanContext
  const flags = (traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
  const traceparent = `00-${traceId}-${spanId}-${flags}`
  return traceState === undefined ? traceparent : traceparent + traceState.serialize()
}
