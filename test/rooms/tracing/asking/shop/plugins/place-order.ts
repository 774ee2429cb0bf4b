import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type HttpContext, Plugin, type Tools } from '#heddle'

/** Does a bit of everything that makes spans. The card's number is what must appear in none of them. */
export default class PlaceOrder extends Plugin {
  #bus
  #db
  #http
  #state
  #tracer

  constructor({ db, event_bus, http, state, telemetry }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
    this.#http = http
    this.#state = state
    this.#tracer = telemetry.getTracer('shop')
  }

  override onBoot() {
    this.#http.addEndpoint('/orders/:kind', 'POST', this.place, { body: z.object({ card: z.string() }) })
    this.#http.addEndpoint('/orders/:kind', 'GET', this.fail)
  }

  override async onReady() {
    await this.#bus.publish('order.loose', {})
  }

  async place({ kind, card }: { kind: string; card: string }) {
    const id = randomUUID()
    await this.#db.transaction(async (tx) => {
      await tx.execute('INSERT INTO orders (id, card) VALUES ($1, $2)', [id, card])
    })
    const price = await this.#tracer.startActiveSpan('price the order', async (span) => {
      const rows = await this.#db.query("SELECT id, 'a text' AS text FROM orders WHERE card = $1", [card])
      span.setAttribute('shop.orders', rows.length)
      span.end()
      return rows.length
    })
    await this.#state.increment('orders')
    const event = await this.#bus.publish(`order.${kind}`, { id, card })
    return { success: true, data: { id, price, event } }
  }

  async fail({ kind }: { kind: string }, context: HttpContext) {
    if (kind === 'statement') await this.#db.query('SELECT id FROM nowhere')
    if (kind === 'client') context.setStatus(404)
    if (kind === 'timed') {
      const nowMs = Date.now()
      this.#tracer.startSpan('measured elsewhere', { startTime: nowMs - 40 }).end(nowMs - 10)
    }
    if (kind === 'unreadable') {
      throw Object.defineProperty(new Error('unreadable'), 'stack', {
        get() {
          throw new Error('no stack')
        },
      })
    }
    if (kind !== 'handler') return { success: false, error: 'no' }
    throw new RangeError('the handler has failed')
  }
}
