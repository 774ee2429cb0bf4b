import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { type HttpContext, plugin } from '#heddle'

/** Does a bit of everything that makes spans. The card's number is what must appear in none of them. */
export default plugin(({ db, event_bus, http, state, telemetry }) => {
  const tracer = telemetry.getTracer('shop')

  async function place({ kind, card }: { kind: string; card: string }) {
    const id = randomUUID()
    await db.transaction(async (tx) => {
      await tx.execute('INSERT INTO orders (id, card) VALUES ($1, $2)', [id, card])
    })
    const price = await tracer.startActiveSpan('price the order', async (span) => {
      const rows = await db.query("SELECT id, 'a text' AS text FROM orders WHERE card = $1", [card])
      span.setAttribute('shop.orders', rows.length)
      span.end()
      return rows.length
    })
    await state.increment('orders')
    const event = await event_bus.publish(`order.${kind}`, { id, card })
    return { success: true, data: { id, price, event } }
  }

  async function fail({ kind }: { kind: string }, context: HttpContext) {
    if (kind === 'statement') await db.query('SELECT id FROM nowhere')
    if (kind === 'client') context.setStatus(404)
    if (kind === 'timed') {
      const nowMs = Date.now()
      tracer.startSpan('measured elsewhere', { startTime: nowMs - 40 }).end(nowMs - 10)
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

  http.addEndpoint('/orders/:kind', 'POST', place, { body: z.object({ card: z.string() }) })
  http.addEndpoint('/orders/:kind', 'GET', fail)
  return {
    async onReady() {
      await event_bus.publish('order.loose', {})
    },
  }
})
