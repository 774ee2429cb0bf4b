import type { RawAttribute, RawRequest, RawSpan, RawValue } from './definitions.ts'
import { faultsOfAttributes, faultsOfSpan, HAS_IS_REMOTE, IS_REMOTE, TRACE_FLAGS_MASK } from './span-rules.ts'

export type SpanKind = 'INTERNAL' | 'SERVER' | 'CLIENT' | 'PRODUCER' | 'CONSUMER'
export type StatusCode = 'UNSET' | 'OK' | 'ERROR'

/** Integers beyond 2^53 are bigints; null is a value that says nothing. */
export type AttributeValue =
  | string
  | number
  | bigint
  | boolean
  | null
  | Uint8Array
  | AttributeValue[]
  | { [key: string]: AttributeValue }

export type Attributes = Record<string, AttributeValue>

export interface SpanEvent {
  name: string
  timeMs: number
  attributes: Attributes
  droppedAttributesCount: number
}

export interface SpanLink {
  traceId: string
  spanId: string
  traceState: string
  attributes: Attributes
}

/** A span as it arrived, with what its resource and its scope say of it. */
export interface ReceivedSpan {
  /** 32 hexadecimal digits. */
  traceId: string
  /** 16 hexadecimal digits. */
  spanId: string
  /** Empty for a root. */
  parentSpanId: string
  traceState: string
  /** Whether its parent is in another process or thread; undefined when the sender does not say. */
  remoteParent: boolean | undefined
  /** The flags of the trace context. 1: sampled. */
  traceFlags: number
  name: string
  kind: SpanKind
  /** Milliseconds since 1970. */
  startMs: number
  endMs: number
  startNs: bigint
  endNs: bigint
  attributes: Attributes
  events: SpanEvent[]
  links: SpanLink[]
  status: { code: StatusCode; message: string }
  resource: Attributes
  scope: { name: string; version: string }
  droppedAttributesCount: number
  droppedEventsCount: number
  droppedLinksCount: number
}

export interface Decoded {
  spans: ReceivedSpan[]
  /** What breaks a rule of the protocol, in words. */
  faults: string[]
}

/** Flattens an export into its spans. */
export function decodeRequest(request: RawRequest): Decoded {
  const spans: ReceivedSpan[] = []
  const faults: string[] = []
  for (const { resource, scopeSpans } of request.resourceSpans) {
    const attributes = attributesOf(resource?.attributes)
    faults.push(...faultsOfAttributes('resource', resource?.attributes ?? []))
    if (typeof attributes['service.name'] !== 'string') faults.push('resource: no service.name')
    for (const { scope, spans: raw } of scopeSpans) {
      faults.push(...faultsOfAttributes('scope', scope?.attributes ?? []))
      for (const span of raw) {
        spans.push(decodeSpan(span, attributes, { name: scope?.name ?? '', version: scope?.version ?? '' }))
        faults.push(...faultsOfSpan(span))
      }
    }
  }
  return { spans, faults }
}

function decodeSpan(raw: RawSpan, resource: Attributes, scope: ReceivedSpan['scope']): ReceivedSpan {
  const startNs = BigInt(raw.startTimeUnixNano)
  const endNs = BigInt(raw.endTimeUnixNano)
  return {
    traceId: raw.traceId.toString('hex'),
    spanId: raw.spanId.toString('hex'),
    parentSpanId: raw.parentSpanId.toString('hex'),
    traceState: raw.traceState,
    remoteParent: raw.flags & HAS_IS_REMOTE ? (raw.flags & IS_REMOTE) !== 0 : undefined,
    traceFlags: raw.flags & TRACE_FLAGS_MASK,
    name: raw.name,
    kind: String(raw.kind).replace('SPAN_KIND_', '') as SpanKind,
    startMs: milliseconds(startNs),
    endMs: milliseconds(endNs),
    startNs,
    endNs,
    attributes: attributesOf(raw.attributes),
    events: raw.events.map(({ name, timeUnixNano, attributes, droppedAttributesCount }) => ({
      name,
      timeMs: milliseconds(BigInt(timeUnixNano)),
      attributes: attributesOf(attributes),
      droppedAttributesCount,
    })),
    links: raw.links.map(({ traceId, spanId, traceState, attributes }) => ({
      traceId: traceId.toString('hex'),
      spanId: spanId.toString('hex'),
      traceState,
      attributes: attributesOf(attributes),
    })),
    status: {
      code: String(raw.status?.code ?? 'UNSET').replace('STATUS_CODE_', '') as StatusCode,
      message: raw.status?.message ?? '',
    },
    resource,
    scope,
    droppedAttributesCount: raw.droppedAttributesCount,
    droppedEventsCount: raw.droppedEventsCount,
    droppedLinksCount: raw.droppedLinksCount,
  }
}

const milliseconds = (ns: bigint): number => Number(ns / 1000n) / 1000

function attributesOf(raw: readonly RawAttribute[] | undefined): Attributes {
  return Object.fromEntries((raw ?? []).map(({ key, value }) => [key, plainValue(value)]))
}

function plainValue(raw: RawValue | null): AttributeValue {
  switch (raw?.value) {
    case 'stringValue':
      return raw.stringValue
    case 'boolValue':
      return raw.boolValue
    case 'intValue': {
      const number = Number(raw.intValue)
      return Number.isSafeInteger(number) ? number : BigInt(raw.intValue)
    }
    case 'doubleValue':
      return raw.doubleValue
    case 'arrayValue':
      return raw.arrayValue.values.map(plainValue)
    case 'kvlistValue':
      return attributesOf(raw.kvlistValue.values)
    case 'bytesValue':
      return raw.bytesValue
    default:
      return null
  }
}
