import { type EventMeta, type Payload, Plugin, type Tools } from '#heddle'
import { writeSeen } from '../seen.ts'

/** Handles orders in the way that each asks for. */
export default class ShipOrders extends Plugin {
  #bus
  #db
  #replica

  constructor({ config, db, event_bus }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
    this.#replica = config.get('FLEET_REPLICA', { default: '' })
  }

  override onBoot() {
    // Often enough for a database that is away for some seconds.
    this.#bus.subscribe('order.taken', this.ship, { retries: 12, backoffMs: 50 })
    this.#bus.subscribe('order.noted', this.note)
  }

  /** @param order `ms` to wait */
  async ship(order: Payload, event: EventMeta): Promise<void> {
    const { ms } = order
    if (ms !== undefined) await writeSeen(this.#db, this.#replica, 'begins', order, event)
    if (ms !== undefined) await new Promise((resolve) => setTimeout(resolve, Number(ms)))
    await writeSeen(this.#db, this.#replica, 'ends', order, event)
  }

  async note(order: Payload, event: EventMeta): Promise<void> {
    await writeSeen(this.#db, this.#replica, 'ends', order, event)
  }
}
