import { type EventMeta, Plugin, type Tools } from '#heddle'
import { noteHandled, type Order, PATIENT } from '../handling.ts'

/** Each so many-th order is confirmed by the second attempt. */
const STUMBLES_AT = 13

/** Confirms an order, and says so, in one transaction. */
export default class ConfirmOrders extends Plugin {
  #db

  constructor({ db, event_bus }: Tools) {
    super()
    this.#db = db
    event_bus.subscribe('order.placed', this.confirm, PATIENT)
  }

  async confirm({ number, key }: Order, event: EventMeta) {
    if (number % STUMBLES_AT === 0 && event.attempt === 1) throw new Error(`${number} fails on purpose`)
    await this.#db.transaction(async (tx) => {
      const child = await tx.publish('order.confirmed', { number, key }, { key })
      await noteHandled(tx, { number, key }, event, child)
    })
  }
}
