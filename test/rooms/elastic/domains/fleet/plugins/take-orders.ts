import { randomUUID } from 'node:crypto'
import { type Data, type HttpContext, plugin } from '#heddle'

/** Takes orders: a row each, and an event. */
export default plugin(({ db, event_bus, http }) => {
  /** Answers when the row is committed and the bus has the event. */
  async function take({ number, payload = {}, options = {} }: Data, context: HttpContext) {
    await db.execute('INSERT INTO fleet_orders (id, number) VALUES ($1, $2)', [randomUUID(), number])
    const id = await event_bus.publish('order.taken', { ...payload, number }, options)
    context.setStatus(201)
    return { success: true, data: { id } }
  }

  /** Events with the numbers from `from` on, without a row, and without waiting for one another. With `keys`, key `k0` and so on in turn. */
  async function publish({ event, from = 0, count = 1, keys = 0, payload = {}, options = {} }: Data) {
    const ids = Array.from({ length: count }, (_, n) =>
      event_bus.publish(event, { ...payload, number: from + n }, keys === 0 ? options : { key: `k${n % keys}` }),
    )
    return { success: true, data: { ids: await Promise.all(ids) } }
  }

  http.addEndpoint('/orders', 'POST', take)
  http.addEndpoint('/events/:event', 'POST', publish)
})
