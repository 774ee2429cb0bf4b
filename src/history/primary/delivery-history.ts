import type {
  DeliveryEvent,
  DeliveryFacts,
  DeliverySpan,
  DeliveryTracing,
  TraceScope,
} from '../../contracts/tracing.ts'
import type { TraceContext } from '../../core/causality/trace-context.ts'
import type { ThreadHistory } from '../recording/thread-history.ts'

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
    return inner ?? new OwnSpan(parent, this.nowMs())
  }

  note(span: DeliverySpan, event: DeliveryEvent): void {
    if (span instanceof OwnSpan) span.events.push(event)
    else this.#inner!.note(span, event)
  }

  end(span: DeliverySpan, facts: DeliveryFacts, isGivenUp: boolean): void {
    if (!(span instanceof OwnSpan)) this.#inner!.end(span, facts, isGivenUp)
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

/** Of a delivery that the tracing does not want: its subscriber belongs below the span that published. */
class OwnSpan implements DeliverySpan {
  readonly events: DeliveryEvent[] = []
  readonly parent: TraceContext
  readonly startMs: number

  constructor(parent: TraceContext, startMs: number) {
    this.parent = parent
    this.startMs = startMs
  }

  get traceContext(): TraceContext {
    return this.parent
  }
}
