// The deliveries in flight in one thread.
import type { WireError } from '../../core/errors/wire.ts'
import type { DeliverySink } from '../../runtime/events/event-server.ts'

/** Counts the deliveries in flight in one thread, and hands their answers on. One that was given up does not count, and its late answer changes nothing here. */
export class DeliveryCount implements DeliverySink {
  count = 0
  readonly #hub: DeliverySink
  /** Deliveries that were given up and not answered. */
  readonly #abandoned = new Set<number>()

  constructor(hub: DeliverySink) {
    this.#hub = hub
  }

  sent(): void {
    this.count++
  }

  /** Gives a delivery up: a handler that never ends must not use up the thread's room for events. */
  abandon(deliveryId: number): void {
    this.#abandoned.add(deliveryId)
    this.count--
  }

  readonly delivered = (deliveryId: number): void => {
    this.#answered(deliveryId)
    this.#hub.delivered(deliveryId)
  }

  reply(deliveryId: number, json: string): void {
    this.#answered(deliveryId)
    this.#hub.reply(deliveryId, json)
  }

  failed(deliveryId: number, error: WireError): void {
    this.#answered(deliveryId)
    this.#hub.failed(deliveryId, error)
  }

  #answered(deliveryId: number): void {
    if (this.#abandoned.size === 0 || !this.#abandoned.delete(deliveryId)) this.count--
  }
}
