import { type EventMeta, plugin } from '#heddle'
import { noteHandled, type Order, PATIENT } from '../handling.ts'

/** Each so many-th note is never done with by the first attempt. */
const HANGS_AT = 97

/** Ships what is confirmed: publishes first, and notes it then. */
export default plugin(({ db, event_bus }) => {
  event_bus.subscribe('order.confirmed', ship, PATIENT)
  event_bus.subscribe('order.shipped', end, PATIENT)
  event_bus.subscribe('note.taken', note, { ...PATIENT, timeoutMs: 3000 })

  async function ship({ number, key }: Order, event: EventMeta) {
    const child = await event_bus.publish('order.shipped', { number, key }, { key })
    await noteHandled(db, { number, key }, event, child)
  }

  async function note(taken: Order, event: EventMeta) {
    if (taken.number % HANGS_AT === 0 && event.attempt === 1) await new Promise(() => {})
    await end(taken, event)
  }

  async function end(order: Order, event: EventMeta) {
    await noteHandled(db, order, event, null)
  }
})
