// Spans of deliveries.
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type {
  DeliveryEvent,
  DeliveryFacts,
  DeliverySpan,
  DeliveryTracing,
  SpanAttributes,
  TraceContext,
  TraceScope,
} from '../contracts/tracing.ts'
import { isSampled, NO_TRACE_CONTEXT, traceIdOf, tracestateOf } from '../core/causality/context.ts'
import { randomHex } from '../core/causality/ids.ts'
import { ATTR, cut, MESSAGING_SYSTEM } from './attributes.ts'
import { ContextScope, remoteContext } from './scope.ts'
import { hrTimeOf, type SpanRecordEvent, type SpanSource } from './span-record.ts'

/** Most span events of one delivery. The first ones are kept. */
const EVENTS_MAX = 128

/** CONSUMER spans: one for each delivery with all its attempts. They are plain data, because no single thread sees all attempts. */
export class DeliverySpans implements DeliveryTracing {
  readonly nowMs: () => number
  readonly #source: SpanSource

  constructor(source: SpanSource) {
    this.#source = source
    this.nowMs = source.nowMs
  }

  scope(traceContext: TraceContext): TraceScope {
    return new ContextScope(remoteContext(traceContext))
  }

  begin(parent: TraceContext): DeliverySpan | null {
    if (parent !== NO_TRACE_CONTEXT && !isSampled(parent)) return null
    const traceContext =
      parent === NO_TRACE_CONTEXT
        ? this.#newTrace()
        : `00-${traceIdOf(parent)}-${randomHex(8)}-01${tracestateOf(parent)}`
    return { traceContext, parent, startMs: this.nowMs(), events: [] }
  }

  /** For an event that was published outside of all traces. */
  #newTrace(): TraceContext {
    const traceId = randomHex(16)
    const flags = this.#source.sampler.samples(NO_TRACE_CONTEXT, traceId) ? '01' : '00'
    return `00-${traceId}-${randomHex(8)}-${flags}`
  }

  note(span: DeliverySpan, event: DeliveryEvent): void {
    if (span.events.length < EVENTS_MAX) span.events.push(event)
  }

  end(span: DeliverySpan, { event, eventId, group, requestId }: DeliveryFacts, isGivenUp: boolean): void {
    const { traceContext, parent, startMs, events } = span
    if (!isSampled(traceContext)) return
    const attributes: SpanAttributes = {
      [ATTR.MESSAGING_SYSTEM]: MESSAGING_SYSTEM,
      [ATTR.MESSAGING_OPERATION]: 'process',
      [ATTR.MESSAGING_OPERATION_TYPE]: 'process',
      [ATTR.MESSAGING_DESTINATION]: event,
      [ATTR.MESSAGING_MESSAGE_ID]: eventId,
      [ATTR.MESSAGING_GROUP]: group,
      [ATTR.EVENT_ID]: eventId,
    }
    if (requestId !== null) attributes[ATTR.REQUEST_ID] = requestId
    if (isGivenUp) attributes[ATTR.ERROR_TYPE] = 'dead_letter'
    this.#source.writer.write(() => ({
      context: traceContext,
      parent,
      isParentRemote: parent !== NO_TRACE_CONTEXT,
      name: cut(`process ${event}`),
      kind: SpanKind.CONSUMER,
      start: hrTimeOf(startMs),
      end: hrTimeOf(Math.max(startMs, this.nowMs())),
      attributes,
      events: events.map(recordEventOf),
      // Not the message of the error, which may contain a value of the payload. The subscriber's span has the exception.
      ...(isGivenUp && { status: { code: SpanStatusCode.ERROR, message: 'It is a dead letter' } }),
    }))
  }
}

function recordEventOf(event: DeliveryEvent): SpanRecordEvent {
  return { name: event.name, time: hrTimeOf(event.atMs), attributes: attributesOf(event) }
}

function attributesOf(event: DeliveryEvent): SpanAttributes {
  switch (event.name) {
    case 'retry':
      return { [ATTR.EVENT_ATTEMPT]: event.attempt, [ATTR.RETRY_DELAY]: Math.round(event.delayMs) }
    case 'put_off':
      return { [ATTR.RETRY_DELAY]: Math.round(event.delayMs) }
    case 'thread_death':
      return { [ATTR.EVENT_DEATHS]: event.deaths }
    case 'dead_letter':
      return { [ATTR.EVENT_ATTEMPTS]: event.attempts }
    case 'handed_over':
    case 'taken_over':
    case 'tool_away':
    case 'cancelled':
      return {}
  }
}
