import { createTraceState, type SpanContext, TraceFlags } from '@opentelemetry/api'
import type { TraceContext } from '../contracts/tracing.ts'
import { isSampled, NO_TRACE_CONTEXT, spanIdOf, traceIdOf, tracestateOf } from '../core/causality/trace-context.ts'

/** The span context of OpenTelemetry's API for a trace context. @param traceContext not empty */
export function spanContextOf(traceContext: TraceContext): SpanContext {
  const spanContext: SpanContext = {
    traceId: traceIdOf(traceContext),
    spanId: spanIdOf(traceContext),
    traceFlags: isSampled(traceContext) ? TraceFlags.SAMPLED : TraceFlags.NONE,
  }
  const tracestate = tracestateOf(traceContext)
  if (tracestate !== '') spanContext.traceState = createTraceState(tracestate)
  return spanContext
}

/** The trace context of a span context; empty for undefined. */
export function traceContextOfSpan(spanContext: SpanContext | undefined): TraceContext {
  if (spanContext === undefined) return NO_TRACE_CONTEXT
  const { traceId, spanId, traceFlags, traceState } = spanContext
  const flags = (traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
  const traceparent = `00-${traceId}-${spanId}-${flags}`
  return traceState === undefined ? traceparent : traceparent + traceState.serialize()
}
