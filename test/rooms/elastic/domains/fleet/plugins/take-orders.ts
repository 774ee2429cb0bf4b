import { randomUUID } from 'node:crypto'
import { type Data, type HttpContext, plugin } from '#heddle'

/** Takes orders: a row each, and an event. */
export default plugin(({ db, event_bus, http }) => {
  /** Answers when the row is committed and the bus has the event. */
  async function take({ number, payload = {} }: Data, context: HttpContext) {
    await db.execute('INSERT INTO fleet_orders (id, number) VALUES ($1, $2)', [randomUUID(), number])
    const id = await event_bus.publish('order.taken', { ...payload, number })
    context.setStatus(201)
    return { success: true, data: { id } }
  }

  /** Events with the numbers from 0 on, without a row, and without waiting for one another. */
  async function publish({ event, count = 1, payload = {} }: Data) {
    const ids = Array.from({ length: count }, (_, number) => event_bus.publish(event, { ...payload, number }))
    return { success: true, data: { ids: await Promise.all(ids) } }
  }

  http.addEndpoint('/orders', 'POST', take)
  http.addEndpoint('/events/:event', 'POST', publish)
})
