import { type EventMeta, type Payload, plugin } from '#heddle'
import { writeSeen } from '../seen.ts'

/** Handles orders, each in its time. */
export default plugin(({ config, db, event_bus }) => {
  const replica = config.get('FLEET_REPLICA', { default: '' })

  async function ship(order: Payload, event: EventMeta): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, Number(order.ms ?? 0)))
    await writeSeen(db, replica, order, event)
  }

  // Often enough for a database that is away for some seconds.
  event_bus.subscribe('order.taken', ship, { retries: 12, backoffMs: 50 })
  event_bus.subscribe('order.noted', ship)
})
