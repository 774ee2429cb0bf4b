import { type EventMeta, Plugin, type Tools } from '#heddle'
import { noteHandled, type Order, PATIENT } from '../handling.ts'

/** Ships what is confirmed: publishes first, and notes it then. */
export default class ShipOrders extends Plugin {
  #db
  #bus

  constructor({ db, event_bus }: Tools) {
    super()
    this.#db = db
    this.#bus = event_bus
    event_bus.subscribe('order.confirmed', this.ship, PATIENT)
    event_bus.subscribe('order.shipped', this.end, PATIENT)
    event_bus.subscribe('note.taken', this.end, PATIENT)
  }

  async ship({ number, key }: Order, event: EventMeta) {
    const child = await this.#bus.publish('order.shipped', { number, key }, { key })
    await noteHandled(this.#db, { number, key }, event, child)
  }

  async end(order: Order, event: EventMeta) {
    await noteHandled(this.#db, order, event, null)
  }
}
