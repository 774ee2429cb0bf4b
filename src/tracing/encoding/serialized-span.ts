import { deserialize, serialize } from 'node:v8'
import { ATTRIBUTE_MAX_LENGTH, cut } from './otlp.ts'
import type { RecordAttributes, SpanRecord } from './span-record.ts'

/** The bytes of a span for the console, in Node's own serialization: only this process reads them. @throws for a value that cannot be serialized */
export function serializeSpan(span: SpanRecord): Uint8Array {
  const { traceContext, parent, isParentRemote, kind, startMs, endMs, statusCode, scope } = span
  const { droppedAttributes, droppedEvents, droppedLinks } = span
  const record: SpanRecord = {
    traceContext,
    parent,
    isParentRemote,
    name: cut(span.name),
    kind,
    startMs,
    endMs,
    attributes: shortened(span.attributes),
    events: span.events.map((event) => ({ ...event, name: cut(event.name), attributes: shortened(event.attributes) })),
    links: span.links.map((link) => ({ ...link, attributes: shortened(link.attributes) })),
    statusCode,
    statusMessage: cut(span.statusMessage),
    scope: { name: cut(scope.name), version: cut(scope.version) },
    droppedAttributes,
    droppedEvents,
    droppedLinks,
  }
  return serialize(record)
}

export const deserializeSpan = (bytes: Uint8Array): SpanRecord => deserialize(bytes)

function shortened(attributes: RecordAttributes): RecordAttributes {
  const short: RecordAttributes = {}
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) short[cut(key)] = shortenedValue(value) as typeof value
  }
  return short
}

function shortenedValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shortenedValue)
  return typeof value === 'string' ? value.slice(0, ATTRIBUTE_MAX_LENGTH) : value
}
