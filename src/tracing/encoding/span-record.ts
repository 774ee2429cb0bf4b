import type { AttributeValue } from '@opentelemetry/api'
import type { TraceContext } from '../../core/causality/trace-context.ts'

export type RecordAttributes = Record<string, AttributeValue | null | undefined>

/** A span that has ended. Times are milliseconds since the epoch, with fractions. */
export interface SpanRecord {
  readonly traceContext: TraceContext
  /** The trace context of the parent span; empty for the root of a trace. */
  readonly parent: TraceContext
  readonly isParentRemote: boolean
  readonly name: string
  /** `SpanKind` of the API. */
  readonly kind: number
  readonly startMs: number
  readonly endMs: number
  readonly attributes: RecordAttributes
  readonly events: readonly SpanRecordEvent[]
  readonly links: readonly SpanRecordLink[]
  /** `SpanStatusCode` of the API. */
  readonly statusCode: number
  readonly statusMessage: string
  /** The instrumentation scope: who made the span. */
  readonly scope: SpanRecordScope
  /** How many were dropped by the limits of the SDK. */
  readonly droppedAttributes: number
  readonly droppedEvents: number
  readonly droppedLinks: number
}

/** Ids and times: what no two spans have in common. */
export type SpanPlace = Pick<SpanRecord, 'traceContext' | 'parent' | 'isParentRemote' | 'startMs' | 'endMs'>

export interface SpanRecordScope {
  readonly name: string
  readonly version: string
}

export interface SpanRecordEvent {
  readonly name: string
  readonly atMs: number
  readonly attributes: RecordAttributes
  readonly droppedAttributes: number
}

export interface SpanRecordLink {
  /** Trace context of the span that it points to. */
  readonly traceContext: TraceContext
  readonly attributes: RecordAttributes
  readonly droppedAttributes: number
}

/** Longer names, messages and texts from clients are cut, so that an export of many spans is not too large for its receiver. Characters. */
export const TEXT_MAX_LENGTH = 1024

/** Spans of the runtime itself. */
export const RUNTIME_SCOPE: SpanRecordScope = { name: 'heddle', version: '' }
