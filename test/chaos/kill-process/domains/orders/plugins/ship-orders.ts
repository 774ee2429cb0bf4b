import { type EventMeta, plugin } from '#heddle'
import { noteHandled, type Order, PATIENT } from '../handling.ts'

/** Ships what is confirmed: publishes first, and notes it then. */
export default plugin(({ db, event_bus }) => {
  event_bus.subscribe('order.confirmed', ship, PATIENT)
  event_bus.subscribe('order.shipped', end, PATIENT)
  event_bus.subscribe('note.taken', end, PATIENT)

  async function ship({ number, key }: Order, event: EventMeta) {
    const child = await event_bus.publish('order.shipped', { number, key }, { key })
    await noteHandled(db, { number, key }, event, child)
  }

  async function end(order: Order, event: EventMeta) {
    await noteHandled(db, order, event, null)
  }
})
