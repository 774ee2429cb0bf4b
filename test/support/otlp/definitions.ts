import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type { MethodDefinition } from '@grpc/grpc-js'
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader'

/**
 * The published OTLP definitions, version 1.4, as a package of the registry ships them: the receiver reads what the protocol says,
 * not what the exporter's own encoder believes.
 */
const FOLDER = dirname(createRequire(import.meta.url).resolve('@elastic/mockotlpserver/package.json'))

const loaded = loadSync('opentelemetry/proto/collector/trace/v1/trace_service.proto', {
  includeDirs: [FOLDER],
  // Nanoseconds since 1970 do not fit a number.
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
})

const service = loaded['opentelemetry.proto.collector.trace.v1.TraceService'] as ServiceDefinition

/** `TraceService.Export`, the one call of the trace signal. */
export const EXPORT = service.Export as MethodDefinition<RawRequest, RawResponse>

export interface RawRequest {
  resourceSpans: RawResourceSpans[]
}

export interface RawResponse {
  partialSuccess?: { rejectedSpans: number; errorMessage: string }
}

export interface RawResourceSpans {
  resource: { attributes: RawAttribute[]; droppedAttributesCount: number } | null
  scopeSpans: RawScopeSpans[]
  schemaUrl: string
}

export interface RawScopeSpans {
  scope: { name: string; version: string; attributes: RawAttribute[] } | null
  spans: RawSpan[]
}

export interface RawSpan {
  traceId: Buffer
  spanId: Buffer
  traceState: string
  parentSpanId: Buffer
  flags: number
  name: string
  /** `SPAN_KIND_SERVER`; a number where the definition has no name for it. */
  kind: string | number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: RawAttribute[]
  droppedAttributesCount: number
  events: { timeUnixNano: string; name: string; attributes: RawAttribute[]; droppedAttributesCount: number }[]
  droppedEventsCount: number
  links: { traceId: Buffer; spanId: Buffer; traceState: string; attributes: RawAttribute[] }[]
  droppedLinksCount: number
  status: { message: string; code: string | number } | null
}

export interface RawAttribute {
  key: string
  value: RawValue | null
}

/** `value` names the field that is set; undefined for an empty value. */
export interface RawValue {
  value?: 'stringValue' | 'boolValue' | 'intValue' | 'doubleValue' | 'arrayValue' | 'kvlistValue' | 'bytesValue'
  stringValue: string
  boolValue: boolean
  intValue: string
  doubleValue: number
  arrayValue: { values: RawValue[] }
  kvlistValue: { values: RawAttribute[] }
  bytesValue: Buffer
}
