import type { HrTime, Link } from '@opentelemetry/api'
import type { ReadableSpan, Span, SpanProcessor, TimedEvent } from '@opentelemetry/sdk-trace-node'
import type { SpanRecord, SpanRecordEvent, SpanRecordLink } from './span-record.ts'
import type { SpanWriter } from './span-writer.ts'

/** When it was begun by the clock of all threads: the SDK's own has whole milliseconds, and a child could seem older than its parent. */
const BEGUN_MS = Symbol('begunMs')
/** A time so little before now is now, and nobody gave it: a thread may lose the processor between two looks at a clock. */
const NOW_MS = 50

type Stamped = { [BEGUN_MS]?: number }

/** Hands each span of the SDK, the moment it has ended, to shared memory. */
export class RecordingProcessor implements SpanProcessor {
  readonly #writer: SpanWriter
  readonly #nowMs: () => number

  constructor(writer: SpanWriter, nowMs: () => number) {
    this.#writer = writer
    this.#nowMs = nowMs
  }

  onStart(span: Span): void {
    ;(span as Stamped)[BEGUN_MS] = this.#nowMs()
  }

  onEnd(span: ReadableSpan): void {
    const nowMs = this.#nowMs()
    const begunMs = (span as Stamped)[BEGUN_MS] ?? nowMs
    const startMs = precise(msOf(span.startTime), begunMs)
    const shiftMs = startMs - msOf(span.startTime)
    const endMs = precise(msOf(span.endTime) + shiftMs, nowMs)
    this.#writer.write(recordOf(span, startMs, Math.max(startMs, endMs), shiftMs))
  }

  forceFlush(): Promise<void> {
    return Promise.resolve()
  }
  shutdown(): Promise<void> {
    return Promise.resolve()
  }
}

const msOf = ([seconds, nanoseconds]: HrTime): number => seconds * 1e3 + nanoseconds / 1e6
const precise = (givenMs: number, stampedMs: number): number =>
  Math.abs(givenMs - stampedMs) <= NOW_MS ? stampedMs : givenMs

function recordOf(span: ReadableSpan, startMs: number, endMs: number, shiftMs: number): SpanRecord {
  const { traceId, spanId, traceState } = span.spanContext()
  const parent = span.parentSpanContext
  return {
    traceId,
    spanId,
    parentSpanId: parent?.spanId ?? '',
    isParentRemote: parent?.isRemote === true,
    tracestate: traceState?.serialize() ?? '',
    name: span.name,
    kind: span.kind,
    startMs,
    endMs,
    attributes: span.attributes,
    events: span.events.length === 0 ? NONE : span.events.map((event) => eventOf(event, shiftMs)),
    links: span.links.length === 0 ? NONE : span.links.map(linkOf),
    statusCode: span.status.code,
    statusMessage: span.status.message ?? '',
    scopeName: span.instrumentationScope.name,
    scopeVersion: span.instrumentationScope.version ?? '',
    droppedAttributes: span.droppedAttributesCount,
    droppedEvents: span.droppedEventsCount,
    droppedLinks: span.droppedLinksCount,
  }
}

const NONE: never[] = []

const eventOf = ({ name, time, attributes, droppedAttributesCount }: TimedEvent, shiftMs: number): SpanRecordEvent => [
  name,
  msOf(time) + shiftMs,
  attributes ?? {},
  droppedAttributesCount ?? 0,
]

const linkOf = ({ context, attributes, droppedAttributesCount }: Link): SpanRecordLink => [
  context.traceId,
  context.spanId,
  context.traceFlags,
  context.traceState?.serialize() ?? '',
  attributes ?? {},
  droppedAttributesCount ?? 0,
]
