import { Plugin, sql, type Tools } from 'heddle'
import { z } from 'zod'

const filter = z.object({
  search: z.string().max(100).optional(),
  max_cents: z.coerce.number().int().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
})

/** `GET /products` */
export default class ListProducts extends Plugin {
  #db
  #http

  constructor({ db, http }: Tools) {
    super()
    this.#db = db
    this.#http = http
  }

  override onBoot() {
    this.#http.addEndpoint('/products', 'GET', this.list, { query: filter })
  }

  async list({ search, max_cents, limit }: z.infer<typeof filter>) {
    const wanted = sql`${search === undefined ? sql`` : sql` AND lower(name) LIKE ${`%${search.toLowerCase()}%`}`}${
      max_cents === undefined ? sql`` : sql` AND price_cents <= ${max_cents}`
    }`
    const products = await this.#db.query(
      sql`SELECT id, name, price_cents, available FROM products WHERE 1 = 1${wanted} ORDER BY name LIMIT ${limit}`,
    )
    return { success: true, data: products }
  }
}
