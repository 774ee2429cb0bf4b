import { SpanKind } from '@opentelemetry/api'
import type { SpanRecord } from '../../../src/tracing/span-record.ts'

export const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
export const TRACE_CONTEXT = `00-${TRACE_ID}-00f067aa0ba902b7-01`

/** A span that has ended, as its thread leaves it. */
export const recordOf = (more: Partial<SpanRecord> = {}): SpanRecord => ({
  context: TRACE_CONTEXT,
  parent: '',
  isParentRemote: false,
  name: 'a span',
  kind: SpanKind.INTERNAL,
  start: [1_800_000_000, 123_250_000],
  end: [1_800_000_000, 124_500_000],
  attributes: {},
  ...more,
})
