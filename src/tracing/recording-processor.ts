import type { HrTime, Link } from '@opentelemetry/api'
import type { ReadableSpan, Span, SpanProcessor, TimedEvent } from '@opentelemetry/sdk-trace-node'
import { type SpanRecord, type SpanRecordEvent, type SpanRecordLink, TEXT_MAX_LENGTH } from './span-record.ts'
import type { SpanWriter } from './span-writer.ts'

/** When it was begun by the clock of all threads: the SDK's own has whole milliseconds, and a child could seem older than its parent. */
const BEGUN_MS = Symbol('begunMs')
/** So near to what the SDK takes by itself nobody has given a time, milliseconds. */
const OWN_MS = 2

type Stamped = { [BEGUN_MS]?: number | undefined }

/** Hands each span of the SDK, the moment it has ended, to shared memory. */
export class RecordingProcessor implements SpanProcessor {
  readonly #writer: SpanWriter
  readonly #nowMs: () => number

  constructor(writer: SpanWriter, nowMs: () => number) {
    this.#writer = writer
    this.#nowMs = nowMs
  }

  onStart(span: Span): void {
    if (!isStartGiven(span)) (span as Stamped)[BEGUN_MS] = this.#nowMs()
  }

  onEnd(span: ReadableSpan): void {
    if (!this.#writer.hasRoom) return this.#writer.lose()
    try {
      this.#writer.write(this.#recordOf(span))
    } catch {
      // A plugin has given it what cannot be put into words; it is not to hear of that by an exception from `end`.
      this.#writer.lose()
    }
  }

  /** Times that a plugin gave are left as they are, others are those of the clock of all threads. */
  #recordOf(span: ReadableSpan): SpanRecord {
    const startMs = msOf(span.startTime)
    const endMs = msOf(span.endTime)
    const begunMs = (span as Stamped)[BEGUN_MS]
    if (begunMs === undefined) return recordOf(span, startMs, endMs, 0)
    const nowMs = this.#nowMs()
    const isEndGiven = Math.abs(endMs - startMs - (nowMs - begunMs)) > OWN_MS
    const shiftMs = begunMs - startMs
    return recordOf(span, begunMs, isEndGiven ? Math.max(begunMs, endMs + shiftMs) : nowMs, shiftMs)
  }

  forceFlush(): Promise<void> {
    return Promise.resolve()
  }
  shutdown(): Promise<void> {
    return Promise.resolve()
  }
}

const msOf = ([seconds, nanoseconds]: HrTime): number => seconds * 1e3 + nanoseconds / 1e6

/** The SDK notes it for itself; should it not any more, a time of now is taken for its own. */
function isStartGiven(span: Span): boolean {
  const { _startTimeProvided: isGiven } = span as { _startTimeProvided?: unknown }
  return typeof isGiven === 'boolean' ? isGiven : Math.abs(msOf(span.startTime) - Date.now()) > OWN_MS
}

function recordOf(span: ReadableSpan, startMs: number, endMs: number, shiftMs: number): SpanRecord {
  const { traceId, spanId, traceState } = span.spanContext()
  const parent = span.parentSpanContext
  return {
    traceId,
    spanId,
    parentSpanId: parent?.spanId ?? '',
    isParentRemote: parent?.isRemote === true,
    tracestate: traceState?.serialize() ?? '',
    name: String(span.name),
    kind: span.kind,
    startMs,
    endMs,
    attributes: span.attributes,
    events: span.events.length === 0 ? NONE : span.events.map((event) => eventOf(event, shiftMs)),
    links: span.links.length === 0 ? NONE : span.links.map(linkOf),
    statusCode: span.status.code,
    statusMessage: String(span.status.message ?? ''),
    scopeName: String(span.instrumentationScope.name),
    scopeVersion: span.instrumentationScope.version ?? '',
    droppedAttributes: span.droppedAttributesCount,
    droppedEvents: span.droppedEventsCount,
    droppedLinks: span.droppedLinksCount,
  }
}

const NONE: never[] = []

const eventOf = ({ name, time, attributes, droppedAttributesCount }: TimedEvent, shiftMs: number): SpanRecordEvent => [
  String(name).slice(0, TEXT_MAX_LENGTH),
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
