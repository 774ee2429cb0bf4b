import type { ReadableSpan, Span, SpanProcessor, TimedEvent } from '@opentelemetry/sdk-trace-node'
import type { SpanRecord, SpanRecordEvent, SpanRecordScope } from '../encoding/span-record.ts'
import type { SpanWriter } from '../encoding/span-writer.ts'
import { linkRecordOf, msOfHrTime } from './api-values.ts'
import { traceContextOfSpan } from './span-context.ts'

/** The start by the clock of all threads: the SDK's own clock has whole milliseconds, so a child could seem older than its parent. */
const BEGUN_MS = Symbol('begunMs')
/** A time that differs less from the SDK's own was not given by a plugin. Milliseconds. */
const OWN_MS = 2

type Stamped = { [BEGUN_MS]?: number | undefined }

/** Writes each span of the SDK into shared memory as soon as it has ended. */
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
    this.#writer.write(this.#recordOf(span))
  }

  /** Times that a plugin gave are kept. Others are replaced by those of the clock of all threads. */
  #recordOf(span: ReadableSpan): SpanRecord {
    const startMs = msOfHrTime(span.startTime)
    const endMs = msOfHrTime(span.endTime)
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

/** The SDK keeps this in a private field. If that field ever goes away, a start time of about now counts as the SDK's own. */
function isStartGiven(span: Span): boolean {
  const { _startTimeProvided: isGiven } = span as { _startTimeProvided?: unknown }
  return typeof isGiven === 'boolean' ? isGiven : Math.abs(msOfHrTime(span.startTime) - Date.now()) > OWN_MS
}

function recordOf(span: ReadableSpan, startMs: number, endMs: number, shiftMs: number): SpanRecord {
  const parent = span.parentSpanContext
  return {
    traceContext: traceContextOfSpan(span.spanContext()),
    parent: traceContextOfSpan(parent),
    isParentRemote: parent?.isRemote === true,
    name: String(span.name),
    kind: span.kind,
    startMs,
    endMs,
    attributes: span.attributes,
    events: span.events.length === 0 ? NONE : span.events.map((event) => eventOf(event, shiftMs)),
    links: span.links.length === 0 ? NONE : span.links.flatMap((link) => linkRecordOf(link) ?? []),
    statusCode: span.status.code,
    statusMessage: String(span.status.message ?? ''),
    scope: scopeOf(span),
    droppedAttributes: span.droppedAttributesCount,
    droppedEvents: span.droppedEventsCount,
    droppedLinks: span.droppedLinksCount,
  }
}

const NONE: never[] = []

const eventOf = ({ name, time, attributes, droppedAttributesCount }: TimedEvent, shiftMs: number): SpanRecordEvent => ({
  name: String(name),
  atMs: msOfHrTime(time) + shiftMs,
  attributes: attributes ?? {},
  droppedAttributes: droppedAttributesCount ?? 0,
})

const scopes = new WeakMap<ReadableSpan['instrumentationScope'], SpanRecordScope>()

function scopeOf({ instrumentationScope }: ReadableSpan): SpanRecordScope {
  let scope = scopes.get(instrumentationScope)
  if (scope === undefined) {
    scope = { name: String(instrumentationScope.name), version: String(instrumentationScope.version ?? '') }
    scopes.set(instrumentationScope, scope)
  }
  return scope
}
