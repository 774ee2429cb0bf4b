import { type Data, type HttpContext, Plugin, type Tools } from '#heddle'
import type { Order } from '../handling.ts'

/** Stores orders with their events in one transaction, and publishes notes and checks without a row. All answer with the event's id. */
export default class PlaceOrders extends Plugin {
  #db
  #bus

  constructor({ http, db, event_bus }: Tools) {
    super()
    this.#db = db
    this.#bus = event_bus
    http.addEndpoint('/orders', 'POST', this.place)
    http.addEndpoint('/notes', 'POST', this.note)
    http.addEndpoint('/checks', 'POST', this.check)
  }

  async place(body: Data, context: HttpContext) {
    const { number, key } = body as unknown as Order
    const id = await this.#db.transaction(async (tx) => {
      const eventId = await tx.publish('order.placed', { number, key }, { key })
      await tx.execute('INSERT INTO placed (number, key, event_id) VALUES ($1, $2, $3)', [number, key, eventId])
      return eventId
    })
    context.setStatus(201)
    return { success: true, data: { id } }
  }

  async note(body: Data, context: HttpContext) {
    const { number, key, delay_ms } = body as unknown as Order & { delay_ms: number }
    const id = await this.#bus.publish('note.taken', { number, key }, { delayMs: delay_ms })
    context.setStatus(201)
    return { success: true, data: { id } }
  }

  async check(body: Data, context: HttpContext) {
    const check = body as unknown as Order & { is_bad: boolean }
    const id = await this.#bus.publish('check.asked', { ...check }, { key: check.key })
    context.setStatus(201)
    return { success: true, data: { id } }
  }
}
