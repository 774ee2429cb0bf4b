/** A span that has ended, on its way out of its thread: written as JSON into the thread's ring, and read there in the form that exporters take. */
import type { Attributes, HrTime } from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node'
import type { TraceContext } from '../contracts/tracing.ts'
import { NO_TRACE_CONTEXT } from '../core/causality/context.ts'
import type { RecordWriter } from '../recording/ring.ts'
import { cut } from './attributes.ts'
import type { TraceSampler } from './sampler.ts'
import { spanContextOf, traceContextOfSpan } from './scope.ts'

/** Bytes for ended spans of one thread that were not fetched yet: about 8,000 spans. */
export const SPAN_RING_BYTES = 4 << 20
/** Longer texts in attributes are cut, for example statements. Characters. */
export const ATTRIBUTE_MAX_LENGTH = 4096
/** The instrumentation scope of the runtime's own spans. */
export const RUNTIME_SCOPE = 'heddle'

/** What is absent is empty, or 0. */
export interface SpanRecord {
  readonly context: TraceContext
  /** The trace context of the parent span; empty for the root of a trace. */
  readonly parent: TraceContext
  readonly isParentRemote: boolean
  readonly name: string
  /** `SpanKind` of the API. */
  readonly kind: number
  readonly start: HrTime
  readonly end: HrTime
  readonly attributes: Attributes
  readonly events?: readonly SpanRecordEvent[]
  readonly links?: readonly SpanRecordLink[]
  readonly status?: ReadableSpan['status']
  /** Who made the span; absent: the runtime. */
  readonly scope?: { readonly name: string; readonly version?: string | undefined }
  /** Attributes, events and links that the SDK has dropped beyond its limits. */
  readonly dropped?: readonly [number, number, number]
}

export interface SpanRecordEvent {
  readonly name: string
  readonly time: HrTime
  readonly attributes: Attributes
  readonly dropped?: number
}

interface SpanRecordLink {
  readonly context: TraceContext
  readonly attributes: Attributes
  readonly dropped?: number
}

/** Writes the ended spans of a thread into its ring. The exporting thread polls it; when it is late and the ring is full, spans are dropped and counted. */
export type SpanWriter = RecordWriter<SpanRecord>

/** What a thread writes spans with that it makes without the SDK. */
export interface SpanSource {
  readonly writer: SpanWriter
  readonly sampler: TraceSampler
  /** Milliseconds since the epoch, the same in all threads. */
  readonly nowMs: () => number
}

/** The record of a span of the SDK. */
export function recordOf(span: ReadableSpan): SpanRecord {
  const { parentSpanContext: parent, status, events, links, instrumentationScope: scope } = span
  const dropped = [span.droppedAttributesCount, span.droppedEventsCount, span.droppedLinksCount] as const
  return {
    context: traceContextOfSpan(span.spanContext()),
    parent: traceContextOfSpan(parent),
    isParentRemote: parent?.isRemote === true,
    name: cut(String(span.name)),
    kind: span.kind,
    start: span.startTime,
    end: span.endTime,
    attributes: writable(span.attributes),
    ...(events.length > 0 && { events: events.map(eventOf) }),
    ...(links.length > 0 && { links: links.map(linkOf) }),
    ...((status.code !== 0 || status.message !== undefined) && { status: statusOf(status) }),
    ...(scope.name !== RUNTIME_SCOPE && { scope: scopeOf(scope) }),
    ...(dropped.some((count) => count > 0) && { dropped }),
  }
}

const eventOf = ({ name, time, attributes, droppedAttributesCount }: ReadableSpan['events'][number]) => ({
  name: cut(String(name)),
  time,
  attributes: writable(attributes),
  dropped: droppedAttributesCount ?? 0,
})

const linkOf = ({ context, attributes, droppedAttributesCount }: ReadableSpan['links'][number]) => ({
  context: traceContextOfSpan(context),
  attributes: writable(attributes),
  dropped: droppedAttributesCount ?? 0,
})

const statusOf = ({ code, message }: ReadableSpan['status']) =>
  message === undefined ? { code } : { code, message: cut(String(message)) }

const scopeOf = ({ name, version }: ReadableSpan['instrumentationScope']) => ({
  name: cut(String(name)),
  ...(version === undefined ? {} : { version: cut(String(version)) }),
})

/** Attributes as JSON has them: short keys, and a number that is none there as its text. */
function writable(attributes: Attributes = {}): Attributes {
  for (const key in attributes) {
    const value = attributes[key]
    if (key !== cut(key) || (typeof value === 'number' && !Number.isFinite(value)) || Array.isArray(value)) {
      return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [cut(name), writableValue(value)]))
    }
  }
  return attributes
}

function writableValue(value: Attributes[string]): Attributes[string] {
  const isWritable = (item: unknown): boolean => typeof item !== 'number' || Number.isFinite(item)
  if (Array.isArray(value)) return value.every(isWritable) ? value : value.map(String)
  return isWritable(value) ? value : String(value)
}

/** Reads a record in the form that the SDK's exporters take. */
export function readableSpan(json: string, resource: Resource): ReadableSpan {
  const record = JSON.parse(json) as SpanRecord
  const { context, parent, isParentRemote, start, end, events = [], links = [], dropped = [0, 0, 0] } = record
  const spanContext = spanContextOf(context)
  return {
    name: record.name,
    kind: record.kind,
    spanContext: () => spanContext,
    ...(parent === NO_TRACE_CONTEXT
      ? {}
      : { parentSpanContext: { ...spanContextOf(parent), isRemote: isParentRemote } }),
    startTime: start,
    endTime: end,
    duration: between(start, end),
    status: record.status ?? { code: 0 },
    attributes: record.attributes,
    events: events.map(({ name, time, attributes, dropped = 0 }) => ({
      name,
      time,
      attributes,
      droppedAttributesCount: dropped,
    })),
    links: links.map(({ context, attributes, dropped = 0 }) => ({
      context: spanContextOf(context),
      attributes,
      droppedAttributesCount: dropped,
    })),
    ended: true,
    resource,
    instrumentationScope: sameScope(record.scope),
    droppedAttributesCount: dropped[0],
    droppedEventsCount: dropped[1],
    droppedLinksCount: dropped[2],
  }
}

const scopes = new Map<string, ReadableSpan['instrumentationScope']>()

/** One object for all spans of a scope: by it the library puts them together. */
function sameScope(scope: ReadableSpan['instrumentationScope'] = { name: RUNTIME_SCOPE }) {
  const key = JSON.stringify(scope)
  const known = scopes.get(key)
  if (known === undefined) scopes.set(key, scope)
  return known ?? scope
}

function between([fromSeconds, fromNs]: HrTime, [toSeconds, toNs]: HrTime): HrTime {
  const [seconds, ns] = [toSeconds - fromSeconds, toNs - fromNs]
  return ns < 0 ? [seconds - 1, ns + 1e9] : [seconds, ns]
}

/** @param ms milliseconds since the epoch, with fractions */
export function hrTimeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1e3)
  return [seconds, Math.min(999_999_999, Math.round((ms - seconds * 1e3) * 1e6))]
}
