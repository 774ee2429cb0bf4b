import type {
  DeliveryEvent,
  DeliveryFacts,
  DeliverySpan,
  DeliveryTracing,
  TraceScope,
} from '../../contracts/tracing.ts'
import type { TraceContext } from '../../core/causality/trace-context.ts'
import type { ThreadHistory } from './thread-history.ts'

/** Records the deliveries of events with their retries. It takes the place of their tracing, and passes everything on to it. */
export class DeliveryHistory implements DeliveryTracing {
  readonly nowMs: () => number
  readonly #inner: DeliveryTracing | null
  readonly #own: ThreadHistory

  constructor(own: ThreadHistory, inner: DeliveryTracing | null) {
    this.#own = own
    this.#inner = inner
    this.nowMs = own.nowMs
  }

  scope(traceContext: TraceContext): TraceScope {
    return this.#own.scope(traceContext)
  }

  begin(parent: TraceContext): DeliverySpan {
    const inner = this.#inner?.begin(parent) ?? null
    if (inner !== null) return inner
    // The tracing does not want it: its subscriber belongs below the span that published.
    const own: OwnSpan = { isOwn: true, parent, traceContext: parent, startMs: this.nowMs(), events: [] }
    return own
  }

  note(span: DeliverySpan, event: DeliveryEvent): void {
    if (isOwn(span)) span.events.push(event)
    else this.#inner!.note(span, event)
  }

  end(span: DeliverySpan, facts: DeliveryFacts, isGivenUp: boolean): void {
    if (!isOwn(span)) this.#inner!.end(span, facts, isGivenUp)
    const { keep, writer, nowMs } = this.#own
    const { event, eventId, group, requestId } = facts
    if (!keep.isAll && span.events.length === 0 && !isGivenUp) return
    writer.write(() => ({
      type: 'delivery',
      requestId,
      eventId,
      event,
      group,
      atMs: span.startMs,
      ms: nowMs() - span.startMs,
      isGivenUp,
      steps: span.events.slice(0, STEPS_MAX),
    }))
  }
}

/** Steps of one delivery that are kept. */
const STEPS_MAX = 50

/** Plain data: where an attempt has failed, it goes to the primary, which ends it. */
interface OwnSpan extends DeliverySpan {
  readonly isOwn: true
}

const isOwn = (span: DeliverySpan): span is OwnSpan => 'isOwn' in span
