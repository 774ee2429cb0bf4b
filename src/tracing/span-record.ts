import type { AttributeValue } from '@opentelemetry/api'

export type RecordAttributes = Record<string, AttributeValue | null | undefined>

/** A span that has ended, as it travels to the thread that exports it. Times are milliseconds since the epoch, with fractions. */
export interface SpanRecord {
  traceId: string
  spanId: string
  /** Empty for the root of a trace. */
  parentSpanId: string
  isParentRemote: boolean
  tracestate: string
  name: string
  /** `SpanKind` of the API. */
  kind: number
  startMs: number
  endMs: number
  attributes: RecordAttributes
  events: SpanRecordEvent[]
  links: SpanRecordLink[]
  /** `SpanStatusCode` of the API. */
  statusCode: number
  statusMessage: string
  /** Whose span it is: the runtime's own, or the name that a plugin gave its tracer. */
  scopeName: string
  scopeVersion: string
  /** Beyond the limits of the SDK. */
  droppedAttributes: number
  droppedEvents: number
  droppedLinks: number
}

export type SpanRecordEvent = [name: string, atMs: number, attributes: RecordAttributes, droppedAttributes: number]
export type SpanRecordLink = [
  traceId: string,
  spanId: string,
  traceFlags: number,
  tracestate: string,
  attributes: RecordAttributes,
  droppedAttributes: number,
]

/** Names, messages and what clients send are cut beyond, characters: an export of many spans has to stay below what receivers take. */
export const TEXT_MAX_LENGTH = 1024

/** Spans of the runtime itself have this scope. */
export const RUNTIME_SCOPE = 'heddle'

/** A list in the order of the interface, half the text of an object. By hand: most of it needs no look for what JSON has to escape. */
export function encodeSpan(span: SpanRecord): string {
  return (
    `["${span.traceId}","${span.spanId}","${span.parentSpanId}",${span.isParentRemote ? 1 : 0},${quoted(span.tracestate)},` +
    `${quoted(span.name)},${span.kind},${span.startMs},${span.endMs},${JSON.stringify(span.attributes)},` +
    `${span.events.length === 0 ? '[]' : JSON.stringify(span.events)},${span.links.length === 0 ? '[]' : JSON.stringify(span.links)},` +
    `${span.statusCode},${quoted(span.statusMessage)},${quoted(span.scopeName)},${quoted(span.scopeVersion)},` +
    `${span.droppedAttributes},${span.droppedEvents},${span.droppedLinks}]`
  )
}

const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** A JSON string, cut where it is too long. */
export function quoted(text: string): string {
  const shown = text.length > TEXT_MAX_LENGTH ? text.slice(0, TEXT_MAX_LENGTH) : text
  return PLAIN.test(shown) ? `"${shown}"` : JSON.stringify(shown)
}

export function decodeSpan(text: string): SpanRecord {
  const fields = JSON.parse(text) as unknown[]
  return {
    traceId: fields[0] as string,
    spanId: fields[1] as string,
    parentSpanId: fields[2] as string,
    isParentRemote: fields[3] === 1,
    tracestate: fields[4] as string,
    name: fields[5] as string,
    kind: fields[6] as number,
    startMs: fields[7] as number,
    endMs: fields[8] as number,
    attributes: fields[9] as RecordAttributes,
    events: fields[10] as SpanRecordEvent[],
    links: fields[11] as SpanRecordLink[],
    statusCode: fields[12] as number,
    statusMessage: fields[13] as string,
    scopeName: fields[14] as string,
    scopeVersion: fields[15] as string,
    droppedAttributes: fields[16] as number,
    droppedEvents: fields[17] as number,
    droppedLinks: fields[18] as number,
  }
}
