import { type Attributes, createTraceState, type HrTime, type SpanContext, TraceFlags } from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import type { RecordAttributes, SpanRecord } from './span-record.ts'

/** A span as the SDK's exporters want it. */
export function readableSpan(span: SpanRecord, resource: Resource): ReadableSpan {
  const traceState = span.tracestate === '' ? undefined : createTraceState(span.tracestate)
  const contextOf = (spanId: string, isRemote: boolean): SpanContext => ({
    traceId: span.traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote,
    ...(traceState === undefined ? {} : { traceState }),
  })
  const spanContext = contextOf(span.spanId, false)
  return {
    name: span.name,
    kind: span.kind,
    spanContext: () => spanContext,
    ...(span.parentSpanId === '' ? {} : { parentSpanContext: contextOf(span.parentSpanId, span.isParentRemote) }),
    startTime: hrTime(span.startMs),
    endTime: hrTime(span.endMs),
    duration: hrTime(span.endMs - span.startMs),
    status: { code: span.statusCode, ...(span.statusMessage === '' ? {} : { message: span.statusMessage }) },
    attributes: withoutHoles(span.attributes),
    events: span.events.map(([name, atMs, attributes, droppedAttributesCount]) => ({
      name,
      time: hrTime(atMs),
      attributes: withoutHoles(attributes),
      droppedAttributesCount,
    })),
    links: span.links.map(([traceId, spanId, traceFlags, state, attributes, droppedAttributesCount]) => ({
      context: { traceId, spanId, traceFlags, ...(state === '' ? {} : { traceState: createTraceState(state) }) },
      attributes: withoutHoles(attributes),
      droppedAttributesCount,
    })),
    ended: true,
    resource,
    instrumentationScope:
      span.scopeVersion === '' ? { name: span.scopeName } : { name: span.scopeName, version: span.scopeVersion },
    droppedAttributesCount: span.droppedAttributes,
    droppedEventsCount: span.droppedEvents,
    droppedLinksCount: span.droppedLinks,
  }
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1e3)
  return [seconds, Math.min(999_999_999, Math.round((ms - seconds * 1e3) * 1e6))]
}

/** NaN and the infinities are no JSON: they arrive as null, which is no value of an attribute. */
function withoutHoles(attributes: RecordAttributes): Attributes {
  for (const [key, value] of Object.entries(attributes))
    if (value === null || value === undefined) delete attributes[key]
  return attributes as Attributes
}
