import {
  type Attributes,
  type AttributeValue,
  createTraceState,
  type HrTime,
  type SpanContext,
  type SpanStatus,
  TraceFlags,
} from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-node'
import { EVENT, IS_REMOTE, KEY_VALUE, KIND_OFFSET, LINK, LIST, SCOPE, SPAN, STATUS, VALUE } from '../encoding/otlp.ts'
import { RUNTIME_SCOPE, type SpanRecordScope } from '../encoding/span-record.ts'
import { ProtoReader } from './proto-reader.ts'

/** A span out of its bytes, as the SDK's console exporter wants it. @throws RangeError for what is no span */
export function readableSpan(bytes: Uint8Array, scope: SpanRecordScope, resource: Resource): ReadableSpan {
  const reader = new ProtoReader(bytes)
  const attributes: Attributes = {}
  const events: TimedEvent[] = []
  const links: ReadableSpan['links'] = []
  let [traceId, spanId, parentSpanId, tracestate, name] = ['', '', '', '', '']
  let [kind, flags, startMs, endMs] = [0, 0, 0, 0]
  let [droppedAttributesCount, droppedEventsCount, droppedLinksCount] = [0, 0, 0]
  let status: SpanStatus = { code: 0 }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === SPAN.traceId) traceId = reader.hex()
    else if (field === SPAN.spanId) spanId = reader.hex()
    else if (field === SPAN.parentSpanId) parentSpanId = reader.hex()
    else if (field === SPAN.tracestate) tracestate = reader.text()
    else if (field === SPAN.name) name = reader.text()
    else if (field === SPAN.kind) kind = reader.number() - KIND_OFFSET
    else if (field === SPAN.flags) flags = reader.number()
    else if (field === SPAN.start) startMs = reader.milliseconds()
    else if (field === SPAN.end) endMs = reader.milliseconds()
    else if (field === SPAN.attributes) readAttribute(reader.bytes(), attributes)
    else if (field === SPAN.droppedAttributes) droppedAttributesCount = reader.number()
    else if (field === SPAN.events) events.push(eventOf(reader.bytes()))
    else if (field === SPAN.droppedEvents) droppedEventsCount = reader.number()
    else if (field === SPAN.links) links.push(linkOf(reader.bytes()))
    else if (field === SPAN.droppedLinks) droppedLinksCount = reader.number()
    else if (field === SPAN.status) status = statusOf(reader.bytes())
    else reader.skip()
  }
  const context = contextOf(traceId, spanId, tracestate)
  const parent = { ...contextOf(traceId, parentSpanId, tracestate), isRemote: (flags & IS_REMOTE) !== 0 }
  return {
    name,
    kind,
    spanContext: () => context,
    ...(parentSpanId === '' ? {} : { parentSpanContext: parent }),
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - startMs),
    status,
    attributes,
    events,
    links,
    ended: true,
    resource,
    instrumentationScope: scope.version === '' ? { name: scope.name } : scope,
    droppedAttributesCount,
    droppedEventsCount,
    droppedLinksCount,
  }
}

/** @param bytes of a scope; null: it is the runtime's own */
export function scopeOf(bytes: Uint8Array | null): SpanRecordScope {
  if (bytes === null) return RUNTIME_SCOPE
  const reader = new ProtoReader(bytes)
  let [name, version] = ['', '']
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === SCOPE.name) name = reader.text()
    else if (field === SCOPE.version) version = reader.text()
    else reader.skip()
  }
  return { name, version }
}

function contextOf(traceId: string, spanId: string, tracestate: string, traceFlags = TraceFlags.SAMPLED): SpanContext {
  const context = { traceId, spanId, traceFlags }
  return tracestate === '' ? context : { ...context, traceState: createTraceState(tracestate) }
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1e3)
  return [seconds, Math.min(999_999_999, Math.round((ms - seconds * 1e3) * 1e6))]
}

function statusOf(bytes: Uint8Array): SpanStatus {
  const reader = new ProtoReader(bytes)
  const status: SpanStatus = { code: 0 }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === STATUS.code) status.code = reader.number()
    else if (field === STATUS.message) status.message = reader.text()
    else reader.skip()
  }
  return status
}

function eventOf(bytes: Uint8Array): TimedEvent {
  const reader = new ProtoReader(bytes)
  const attributes: Attributes = {}
  const event: TimedEvent = { name: '', time: [0, 0], attributes, droppedAttributesCount: 0 }
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === EVENT.name) event.name = reader.text()
    else if (field === EVENT.time) event.time = hrTime(reader.milliseconds())
    else if (field === EVENT.attributes) readAttribute(reader.bytes(), attributes)
    else if (field === EVENT.droppedAttributes) event.droppedAttributesCount = reader.number()
    else reader.skip()
  }
  return event
}

function linkOf(bytes: Uint8Array): ReadableSpan['links'][number] {
  const reader = new ProtoReader(bytes)
  const attributes: Attributes = {}
  let [traceId, spanId, tracestate, flags, droppedAttributesCount] = ['', '', '', 0, 0]
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === LINK.traceId) traceId = reader.hex()
    else if (field === LINK.spanId) spanId = reader.hex()
    else if (field === LINK.tracestate) tracestate = reader.text()
    else if (field === LINK.attributes) readAttribute(reader.bytes(), attributes)
    else if (field === LINK.droppedAttributes) droppedAttributesCount = reader.number()
    else if (field === LINK.flags) flags = reader.number()
    else reader.skip()
  }
  return { context: contextOf(traceId, spanId, tracestate, flags & 0xff), attributes, droppedAttributesCount }
}

function readAttribute(bytes: Uint8Array, into: Attributes): void {
  const reader = new ProtoReader(bytes)
  let key = ''
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === KEY_VALUE.key) key = reader.text()
    else if (field === KEY_VALUE.value) into[key] = anyValueOf(reader.bytes()) as AttributeValue
    else reader.skip()
  }
}

function anyValueOf(bytes: Uint8Array): unknown {
  const reader = new ProtoReader(bytes)
  switch (reader.next()) {
    case VALUE.text:
      return reader.text()
    case VALUE.bool:
      return reader.number() !== 0
    case VALUE.int:
      return reader.number()
    case VALUE.double:
      return reader.double()
    case VALUE.bytes:
      return reader.bytes()
    case VALUE.array:
      return listOf(reader.bytes()).map(anyValueOf)
    case VALUE.map: {
      const map: Attributes = {}
      for (const pair of listOf(reader.bytes())) readAttribute(pair, map)
      return map
    }
  }
  return undefined
}

function listOf(bytes: Uint8Array): Uint8Array[] {
  const reader = new ProtoReader(bytes)
  const items: Uint8Array[] = []
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === LIST.values) items.push(reader.bytes())
    else reader.skip()
  }
  return items
}
