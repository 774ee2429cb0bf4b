import { type EventMeta, plugin } from '#heddle'
import { noteHandled, type Order, PATIENT } from '../handling.ts'

/** Each so many-th order is confirmed by the second attempt. */
const STUMBLES_AT = 13

/** Confirms an order, and says so, in one transaction. */
export default plugin(({ db, event_bus }) => {
  event_bus.subscribe('order.placed', confirm, PATIENT)

  async function confirm({ number, key }: Order, event: EventMeta) {
    if (number % STUMBLES_AT === 0 && event.attempt === 1) throw new Error(`${number} fails on purpose`)
    await db.transaction(async (tx) => {
      const child = await tx.publish('order.confirmed', { number, key }, { key })
      await noteHandled(tx, { number, key }, event, child)
    })
  }
})
