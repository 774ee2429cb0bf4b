import { plugin } from '#heddle'

/** Longer error messages are cut, since the payload of an event is limited and the failure must be published all the same. */
const ERROR_MAX_CHARS = 65_536

/** Turns every delivery that failed for good into an `event.delivery.failed` event and an entry in the log. */
export default plugin(
  ({ event_bus, logger }) => {
    // The bus calls this while it handles the failed event, which thereby becomes the parent of the event published here.
    event_bus.addFailureListener(({ event, event_id, subscriber, error: message, attempts }) => {
      const error = message.slice(0, ERROR_MAX_CHARS)
      logger.error(`${subscriber} failed to handle ${event}: ${error}`, { event, event_id, subscriber, attempts })
      // A failed subscriber of this event must not cause another one: that would never end.
      if (event === 'event.delivery.failed') return
      event_bus
        .publish('event.delivery.failed', { event, event_id, subscriber, error, attempts })
        .catch((reason: unknown) => logger.error(`event.delivery.failed was not published: ${String(reason)}`))
    })
  },
  { thread: 'primary' },
)
