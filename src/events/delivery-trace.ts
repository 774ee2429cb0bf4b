import { NO_CARRIER } from '../causality/carrier.ts'
import type { DeliveryEvent, DeliveryTracing, TraceScope } from '../contracts/tracing.ts'
import type { Delivery } from './consumer.ts'

type Told = DeliveryEvent extends infer Each ? (Each extends DeliveryEvent ? Omit<Each, 'atMs'> : never) : never

/** The spans of the hub's deliveries, each from its first attempt to its end. Does nothing while tracing is off. */
export class DeliveryTrace {
  tracing: DeliveryTracing | null = null

  /** It is about to be given to a thread: what its subscriber does belongs under its span. */
  sending(delivery: Delivery): void {
    const { event } = delivery
    if (this.tracing !== null) delivery.span ??= this.tracing.begin(event.producer)
    event.trace = delivery.span === null ? event.producer : delivery.span.carrier
  }

  note(delivery: Delivery, told: Told): void {
    if (delivery.span === null || this.tracing === null) return
    this.tracing.note(delivery.span, { ...told, atMs: this.tracing.nowMs() })
  }

  /** @param isDone false when it goes back to its broker */
  ended(delivery: Delivery, isDone: boolean): void {
    const { span, event, consumer, isGivenUp } = delivery
    if (span === null || this.tracing === null) return
    if (!isDone) this.note(delivery, { name: 'handed_over' })
    const { id: eventId, requestId } = event
    this.tracing.end(span, { event: event.event, eventId, group: consumer.group, requestId }, isGivenUp)
    delivery.span = null
  }

  /** Where what belongs to a delivery, beside its subscriber, goes on. */
  scopeOf({ span, event }: Delivery): TraceScope | null {
    const carrier = span === null ? event.producer : span.carrier
    return this.tracing === null || carrier === NO_CARRIER ? null : this.tracing.scope(carrier)
  }
}
