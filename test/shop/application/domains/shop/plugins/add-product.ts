import { randomUUID } from 'node:crypto'
import { type HttpContext, Plugin, type Tools } from 'heddle'
import { z } from 'zod'
import { admins } from '../admins.ts'

const product = z.object({
  name: z.string().min(1).max(100),
  price_cents: z.int().min(1).max(10_000_000),
  available: z.int().min(0).max(1_000_000),
})

/** `POST /products`, for admins */
export default class AddProduct extends Plugin {
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
    this.#http.addEndpoint('/products', 'POST', this.add, {
      authValidator: admins(this.#auth),
      body: product,
      query: z.object({}),
      throws: { 403: { description: 'Admins only', code: 'ADMINS_ONLY' } },
    })
  }

  async add({ name, price_cents, available }: z.infer<typeof product>, context: HttpContext) {
    const id = randomUUID()
    await this.#db.execute('INSERT INTO products (id, name, price_cents, available) VALUES ($1, $2, $3, $4)', [
      id,
      name,
      price_cents,
      available,
    ])
    context.setStatus(201)
    return { success: true, data: { id } }
  }
}
