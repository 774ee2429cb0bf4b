// Traces the hub's deliveries.
import type { DeliveryEvent, DeliveryTracing, TraceScope } from '../../contracts/tracing.ts'
import { NO_TRACE_CONTEXT } from '../../core/causality/context.ts'
import type { Delivery } from './consumer.ts'

type DeliveryNote = DeliveryEvent extends infer Each ? (Each extends DeliveryEvent ? Omit<Each, 'atMs'> : never) : never

/** The spans of the hub's deliveries, each from its first attempt to its end. Does nothing while tracing is off. */
export class DeliveryTrace {
  tracing: DeliveryTracing | null = null
  /** Deliveries with an open span, each at its `spanIndex`. Not a Set: see `Numbered`. */
  readonly #open: Delivery[] = []

  /** Called before a delivery goes to a thread: the subscriber's work belongs under its span. */
  sending(delivery: Delivery): void {
    const { event } = delivery
    if (this.tracing !== null && delivery.span === null) this.#begin(this.tracing, delivery)
    event.trace = delivery.span === null ? event.producer : delivery.span.traceContext
  }

  #begin(tracing: DeliveryTracing, delivery: Delivery): void {
    delivery.span = tracing.begin(delivery.event.producer)
    if (delivery.span === null) return
    delivery.spanIndex = this.#open.push(delivery) - 1
    const { deaths, attempt, isBegun } = delivery
    // The delivery began elsewhere: in a thread that died, or in a process that stopped answering.
    if (deaths > 0) this.note(delivery, { name: 'thread_death', deaths, plugin: null })
    else if (isBegun && attempt === 1) this.note(delivery, { name: 'taken_over' })
  }

  /** The delivery is a dead letter. It gets a span even if no thread here has had it. */
  givenUp(delivery: Delivery, attempts: number): void {
    if (this.tracing !== null && delivery.span === null) this.#begin(this.tracing, delivery)
    this.note(delivery, { name: 'dead_letter', attempts })
  }

  note(delivery: Delivery, told: DeliveryNote): void {
    if (delivery.span === null || this.tracing === null) return
    this.tracing.note(delivery.span, { ...told, atMs: this.tracing.nowMs() })
  }

  /** @param isDone false when the delivery goes back to its broker */
  ended(delivery: Delivery, isDone: boolean): void {
    const { span, event, consumer, state } = delivery
    if (span === null || this.tracing === null) return
    if (!isDone) this.note(delivery, { name: 'handed_over' })
    const { id: eventId, requestId } = event
    this.tracing.end(span, { event: event.event, eventId, group: consumer.group, requestId }, state === 'dead')
    delivery.span = null
    this.#close(delivery)
  }

  #close(delivery: Delivery): void {
    const at = delivery.spanIndex
    delivery.spanIndex = -1
    const last = this.#open.pop()!
    if (last === delivery) return
    this.#open[at] = last
    last.spanIndex = at
  }

  /** Ends the open spans with the process. */
  close(): void {
    for (const delivery of [...this.#open]) this.ended(delivery, false)
  }

  /** Scope for work on a delivery outside its subscriber. */
  scopeOf({ span, event }: Delivery): TraceScope | null {
    const traceContext = span === null ? event.producer : span.traceContext
    return this.tracing === null || traceContext === NO_TRACE_CONTEXT ? null : this.tracing.scope(traceContext)
  }
}
