import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { RUNTIME_SCOPE, type SpanRecord } from '../../../src/tracing/encoding/span-record.ts'

export const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
export const TRACE_CONTEXT = `00-${TRACE_ID}-00f067aa0ba902b7-01`

/** A span that has ended, as its thread leaves it. */
export const recordOf = (more: Partial<SpanRecord> = {}): SpanRecord => ({
  traceContext: TRACE_CONTEXT,
  parent: '',
  isParentRemote: false,
  name: 'a span',
  kind: SpanKind.INTERNAL,
  startMs: 1_800_000_000_123.25,
  endMs: 1_800_000_000_124.5,
  attributes: {},
  events: [],
  links: [],
  statusCode: SpanStatusCode.UNSET,
  statusMessage: '',
  scope: RUNTIME_SCOPE,
  droppedAttributes: 0,
  droppedEvents: 0,
  droppedLinks: 0,
  ...more,
})
