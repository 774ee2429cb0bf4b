import { randomUUID } from 'node:crypto'
import { type Claims, type HttpContext, HttpError, Plugin, type Tools } from 'heddle'

interface Line {
  product_id: string
  quantity: number
  price_cents: number
}

/** `POST /orders`: makes an order of the cart */
export default class PlaceOrder extends Plugin {
  #auth
  #http

  constructor({ auth, http }: Tools) {
    super()
    this.#auth = auth
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/orders', 'POST', this.place, {
      authValidator: this.#auth.validateToken,
      idempotency: 'optional',
      throws: { 409: { description: 'The cart is empty, or too much is wanted', code: ['EMPTY', 'SOLD_OUT'] } },
    })
  }

  place({ _auth }: { _auth: Claims }, context: HttpContext) {
    return context.commit(async (tx) => {
      const lines = await tx.query<Line>(
        `SELECT product_id, quantity, price_cents FROM cart_lines JOIN products ON products.id = product_id
         WHERE customer_id = $1 ORDER BY product_id`,
        [_auth.sub],
      )
      if (lines.length === 0) throw new HttpError(409, 'The cart is empty', { code: 'EMPTY' })
      const id = randomUUID()
      const total = lines.reduce((sum, { quantity, price_cents }) => sum + quantity * price_cents, 0)
      await tx.execute(
        "INSERT INTO orders (id, customer_id, total_cents, status, placed_at) VALUES ($1, $2, $3, 'placed', $4)",
        [id, _auth.sub, total, new Date()],
      )
      for (const { product_id, quantity, price_cents } of lines) {
        const { rowCount } = await tx.execute(
          'UPDATE products SET available = available - $1 WHERE id = $2 AND available >= $1',
          [quantity, product_id],
        )
        // What this transaction has written so far goes with it.
        if (rowCount === 0) throw new HttpError(409, 'Sold out', { code: 'SOLD_OUT', details: { product_id } })
        await tx.execute(
          'INSERT INTO order_lines (order_id, product_id, quantity, price_cents) VALUES ($1, $2, $3, $4)',
          [id, product_id, quantity, price_cents],
        )
      }
      await tx.execute('DELETE FROM cart_lines WHERE customer_id = $1', [_auth.sub])
      await tx.publish('order.placed', { id, customer_id: _auth.sub, total_cents: total })
      context.setStatus(201)
      return { success: true, data: { id, total_cents: total } }
    })
  }
}
