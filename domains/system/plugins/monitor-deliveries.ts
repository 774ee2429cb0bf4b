import { type DeliveryFailure, Plugin, type Tools } from '#heddle'

/** Longer error messages are cut, since the payload of an event is limited and the failure must be published all the same. */
const ERROR_MAX_CHARS = 65_536

/** Turns every delivery that failed for good into an `event.delivery.failed` event and an entry in the log. */
export default class MonitorDeliveries extends Plugin {
  static override thread = 'primary' as const
  #bus
  #logger

  constructor({ event_bus, logger }: Tools) {
    super()
    this.#bus = event_bus
    this.#logger = logger
  }

  override onBoot() {
    this.#bus.addFailureListener((failure) => this.report(failure))
  }

  /** The bus calls this while it handles the failed event, which thereby becomes the parent of the event published here. */
  report({ event, event_id, subscriber, error: message, attempts }: DeliveryFailure) {
    const error = message.slice(0, ERROR_MAX_CHARS)
    this.#logger.error(`${subscriber} failed to handle ${event}: ${error}`, { event, event_id, subscriber, attempts })
    // A failed subscriber of this event must not cause another one: that would never end.
    if (event === 'event.delivery.failed') return
    this.#bus
      .publish('event.delivery.failed', { event, event_id, subscriber, error, attempts })
      .catch((reason: unknown) => this.#logger.error(`event.delivery.failed was not published: ${String(reason)}`))
  }
}
