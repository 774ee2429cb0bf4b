import {
  isSampled,
  NO_TRACE_CONTEXT,
  SPAN_ID_AT,
  SPAN_ID_DIGITS,
  TRACE_ID_AT,
  TRACE_ID_DIGITS,
  tracestateOf,
} from '../../core/causality/trace-context.ts'
import type { ProtoWriter } from './proto-writer.ts'
import {
  type RecordAttributes,
  type SpanPlace,
  type SpanRecord,
  type SpanRecordEvent,
  type SpanRecordLink,
  type SpanRecordScope,
  TEXT_MAX_LENGTH,
} from './span-record.ts'

/**
 * Field numbers and flags of OTLP 1.7: common.proto, resource.proto, trace.proto and trace_service.proto.
 * Source: https://github.com/open-telemetry/opentelemetry-proto
 */
export const REQUEST = { resourceSpans: 1 } as const
export const RESOURCE_SPANS = { resource: 1, scopeSpans: 2 } as const
export const RESOURCE = { attributes: 1 } as const
export const SCOPE_SPANS = { scope: 1, spans: 2 } as const
const SCOPE = { name: 1, version: 2 } as const
const KEY_VALUE = { key: 1, value: 2 } as const
const VALUE = { text: 1, bool: 2, int: 3, double: 4, array: 5, map: 6, bytes: 7 } as const
const LIST = { values: 1 } as const
export const SPAN = {
  traceId: 1,
  spanId: 2,
  tracestate: 3,
  parentSpanId: 4,
  name: 5,
  kind: 6,
  start: 7,
  end: 8,
  attributes: 9,
  droppedAttributes: 10,
  events: 11,
  droppedEvents: 12,
  links: 13,
  droppedLinks: 14,
  status: 15,
  flags: 16,
} as const
const STATUS = { message: 2, code: 3 } as const
const EVENT = { time: 1, name: 2, attributes: 3, droppedAttributes: 4 } as const
const LINK = { traceId: 1, spanId: 2, tracestate: 3, attributes: 4, droppedAttributes: 5, flags: 6 } as const

/** The flag IS_REMOTE is meaningful: it says whether the parent is in another process or thread. */
const HAS_IS_REMOTE = 0x100
const IS_REMOTE = 0x200
const SAMPLED = 1
/** The API numbers kinds from 0, the protocol from 1. */
export const KIND_OFFSET = 1
/** Longer texts in attributes are cut, for example statements. Characters. */
export const ATTRIBUTE_MAX_LENGTH = 4096
/** Lists and maps in attributes are written down to this depth. */
const DEPTH_MAX = 8

export function writeSpan(to: ProtoWriter, span: SpanRecord): void {
  writePlace(to, span)
  to.text(SPAN.name, cut(span.name))
  to.number(SPAN.kind, span.kind + KIND_OFFSET)
  writeAttributes(to, SPAN.attributes, span.attributes)
  to.number(SPAN.droppedAttributes, span.droppedAttributes)
  for (const event of span.events) writeEvent(to, event)
  to.number(SPAN.droppedEvents, span.droppedEvents)
  for (const link of span.links) writeLink(to, link)
  to.number(SPAN.droppedLinks, span.droppedLinks)
  writeStatus(to, span.statusCode, span.statusMessage)
}

/** Writes ids and times: the fields that no two spans have in common. */
export function writePlace(to: ProtoWriter, { traceContext, parent, isParentRemote, startMs, endMs }: SpanPlace): void {
  to.hex(SPAN.traceId, traceContext, TRACE_ID_AT, TRACE_ID_DIGITS)
  to.hex(SPAN.spanId, traceContext, SPAN_ID_AT, SPAN_ID_DIGITS)
  to.text(SPAN.tracestate, tracestateOf(traceContext))
  if (parent !== NO_TRACE_CONTEXT) to.hex(SPAN.parentSpanId, parent, SPAN_ID_AT, SPAN_ID_DIGITS)
  to.fixed32(SPAN.flags, isParentRemote ? SAMPLED | HAS_IS_REMOTE | IS_REMOTE : SAMPLED | HAS_IS_REMOTE)
  to.nanoseconds(SPAN.start, startMs)
  to.nanoseconds(SPAN.end, endMs)
}

export function writeStatus(to: ProtoWriter, code: number, message: string): void {
  if (code === 0 && message === '') return
  const mark = to.begin(SPAN.status)
  to.text(STATUS.message, cut(message))
  to.number(STATUS.code, code)
  to.end(mark)
}

export function writeScope(to: ProtoWriter, { name, version }: SpanRecordScope): void {
  to.text(SCOPE.name, cut(name))
  to.text(SCOPE.version, cut(version))
}

export function writeAttributes(to: ProtoWriter, field: number, attributes: RecordAttributes): void {
  for (const key in attributes) {
    const value = attributes[key]
    if (value !== undefined && value !== null) writeAttribute(to, field, key, value, DEPTH_MAX)
  }
}

export function writeAttribute(to: ProtoWriter, field: number, key: string, value: unknown, depth = DEPTH_MAX): void {
  const pair = to.begin(field)
  to.text(KEY_VALUE.key, cut(key))
  const mark = to.begin(KEY_VALUE.value)
  writeValue(to, value, depth)
  to.end(mark)
  to.end(pair)
}

/** A value of any other type is written as an empty value. @param isWhole false: a number is written as a double */
function writeValue(to: ProtoWriter, value: unknown, depth: number, isWhole = true): void {
  switch (typeof value) {
    case 'string':
      return to.member(VALUE.text, value.length > ATTRIBUTE_MAX_LENGTH ? value.slice(0, ATTRIBUTE_MAX_LENGTH) : value)
    case 'boolean':
      return to.bool(VALUE.bool, value)
    case 'number':
      return isWhole && isInt64(value) ? to.int64(VALUE.int, value) : to.double(VALUE.double, value)
    case 'object':
      if (value !== null && depth > 0) writeComposed(to, value, depth - 1)
  }
}

const isInt64 = (value: number): boolean => Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63

function writeComposed(to: ProtoWriter, value: object, depth: number): void {
  if (value instanceof Uint8Array) return to.blob(VALUE.bytes, value.subarray(0, ATTRIBUTE_MAX_LENGTH))
  const composed = to.begin(Array.isArray(value) ? VALUE.array : VALUE.map)
  if (Array.isArray(value)) {
    // The items of a list are of one type.
    const areWhole = value.every((item) => typeof item !== 'number' || isInt64(item))
    for (const item of value) {
      const mark = to.begin(LIST.values)
      writeValue(to, item, depth, areWhole)
      to.end(mark)
    }
  } else {
    for (const [key, item] of Object.entries(value)) writeAttribute(to, LIST.values, key, item, depth)
  }
  to.end(composed)
}

function writeEvent(to: ProtoWriter, { name, atMs, attributes, droppedAttributes }: SpanRecordEvent): void {
  const mark = to.begin(SPAN.events)
  to.nanoseconds(EVENT.time, atMs)
  to.text(EVENT.name, cut(name))
  writeAttributes(to, EVENT.attributes, attributes)
  to.number(EVENT.droppedAttributes, droppedAttributes)
  to.end(mark)
}

function writeLink(to: ProtoWriter, link: SpanRecordLink): void {
  const mark = to.begin(SPAN.links)
  to.hex(LINK.traceId, link.traceContext, TRACE_ID_AT, TRACE_ID_DIGITS)
  to.hex(LINK.spanId, link.traceContext, SPAN_ID_AT, SPAN_ID_DIGITS)
  to.text(LINK.tracestate, tracestateOf(link.traceContext))
  writeAttributes(to, LINK.attributes, link.attributes)
  to.number(LINK.droppedAttributes, link.droppedAttributes)
  to.fixed32(LINK.flags, isSampled(link.traceContext) ? SAMPLED : 0)
  to.end(mark)
}

export const cut = (text: string): string => (text.length > TEXT_MAX_LENGTH ? text.slice(0, TEXT_MAX_LENGTH) : text)
