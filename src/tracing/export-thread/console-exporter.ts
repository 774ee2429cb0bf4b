import type { Attributes, HrTime } from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import { ConsoleSpanExporter, type ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { NO_TRACE_CONTEXT } from '../../core/causality/trace-context.ts'
import { deserializeSpan } from '../encoding/serialized-span.ts'
import type { SpanRecord } from '../encoding/span-record.ts'
import { spanContextOf } from '../spans/span-context.ts'
import type { SpanExporter } from './span-exporter.ts'

/** Prints spans with the SDK's console exporter. */
export function consoleExporter(): SpanExporter {
  const inner = new ConsoleSpanExporter()
  return {
    export: (batch, onResult) => {
      const spans = batch.map(({ piece, from, to, source }) =>
        readableSpan(deserializeSpan(piece.memory.subarray(from, to)), source.resource),
      )
      inner.export(spans, onResult)
    },
    shutdown: () => inner.shutdown(),
  }
}

/** A span in the form that the SDK's exporters take. */
export function readableSpan(span: SpanRecord, resource: Resource): ReadableSpan {
  const { traceContext, parent, isParentRemote, startMs, endMs, statusCode, statusMessage, scope } = span
  const context = spanContextOf(traceContext)
  return {
    name: span.name,
    kind: span.kind,
    spanContext: () => context,
    ...(parent === NO_TRACE_CONTEXT
      ? {}
      : { parentSpanContext: { ...spanContextOf(parent), isRemote: isParentRemote } }),
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - startMs),
    status: statusMessage === '' ? { code: statusCode } : { code: statusCode, message: statusMessage },
    attributes: span.attributes as Attributes,
    events: span.events.map(({ name, atMs, attributes, droppedAttributes }) => ({
      name,
      time: hrTime(atMs),
      attributes: attributes as Attributes,
      droppedAttributesCount: droppedAttributes,
    })),
    links: span.links.map((link) => ({
      context: spanContextOf(link.traceContext),
      attributes: link.attributes as Attributes,
      droppedAttributesCount: link.droppedAttributes,
    })),
    ended: true,
    resource,
    instrumentationScope: scope.version === '' ? { name: scope.name } : scope,
    droppedAttributesCount: span.droppedAttributes,
    droppedEventsCount: span.droppedEvents,
    droppedLinksCount: span.droppedLinks,
  }
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1e3)
  return [seconds, Math.min(999_999_999, Math.round((ms - seconds * 1e3) * 1e6))]
}
