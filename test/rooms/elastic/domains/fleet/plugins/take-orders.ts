import { randomUUID } from 'node:crypto'
import { type Data, type HttpContext, Plugin, type Tools } from '#heddle'

/** Takes orders: a row each, and an event. */
export default class TakeOrders extends Plugin {
  #bus
  #db
  #http

  constructor({ db, event_bus, http }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/orders', 'POST', this.take)
    this.#http.addEndpoint('/events/:event', 'POST', this.publish)
  }

  /** Answers when the row is committed and the bus has the event. */
  async take({ number, payload = {}, options = {} }: Data, context: HttpContext) {
    await this.#db.execute('INSERT INTO fleet_orders (id, number) VALUES ($1, $2)', [randomUUID(), number])
    const id = await this.#bus.publish('order.taken', { ...payload, number }, options)
    context.setStatus(201)
    return { success: true, data: { id } }
  }

  /** Events with the numbers from `from` on, without a row, and without waiting for one another. With `keys`, key `k0` and so on in turn. */
  async publish({ event, from = 0, count = 1, keys = 0, payload = {}, options = {} }: Data) {
    const ids = Array.from({ length: count }, (_, n) =>
      this.#bus.publish(event, { ...payload, number: from + n }, keys === 0 ? options : { key: `k${n % keys}` }),
    )
    return { success: true, data: { ids: await Promise.all(ids) } }
  }
}
