import { type Claims, DbError, HttpError, Plugin, type Tools } from 'heddle'
import { z } from 'zod'

const line = z.object({ quantity: z.int().min(0).max(100) })

/** `PUT /cart/:product`, of which 0 takes it out, and `GET /cart` */
export default class FillCart extends Plugin {
  #auth
  #db
  #http

  constructor({ auth, db, http }: Tools) {
    super()
    this.#auth = auth
    this.#db = db
    this.#http = http
  }

  override onBoot() {
    const authValidator = this.#auth.validateToken
    this.#http.addEndpoint('/cart/:product', 'PUT', this.put, { authValidator, body: line, query: z.object({}) })
    this.#http.addEndpoint('/cart', 'GET', this.show, { authValidator })
  }

  async put({ product, quantity, _auth }: { product: string; quantity: number; _auth: Claims }) {
    if (quantity === 0) {
      await this.#db.execute('DELETE FROM cart_lines WHERE customer_id = $1 AND product_id = $2', [_auth.sub, product])
    } else {
      try {
        await this.#db.execute(
          `INSERT INTO cart_lines (customer_id, product_id, quantity, touched_at) VALUES ($1, $2, $3, $4)
           ON CONFLICT (customer_id, product_id) DO UPDATE
           SET quantity = excluded.quantity, touched_at = excluded.touched_at`,
          [_auth.sub, product, quantity, new Date()],
        )
      } catch (error) {
        if (error instanceof DbError && error.kind === 'foreign_key_violation') {
          throw new HttpError(404, 'There is no such product')
        }
        throw error
      }
    }
    return this.show({ _auth })
  }

  async show({ _auth }: { _auth: Claims }) {
    const lines = await this.#db.query(
      `SELECT product_id, name, quantity, price_cents FROM cart_lines JOIN products ON products.id = product_id
       WHERE customer_id = $1 ORDER BY name`,
      [_auth.sub],
    )
    return { success: true, data: lines }
  }
}
