import { randomUUID } from 'node:crypto'
import { type HttpContext, Plugin, type ToolsIn } from 'heddle'
import { z } from 'zod'
import type shop from '../domain.ts'
import { admins } from '../roles.ts'
import { shopTables } from '../tables.ts'

const product = z.object({
  name: z.string().min(1).max(100),
  price_cents: z.int().min(1).max(10_000_000),
  available: z.int().min(0).max(1_000_000),
})

/** `POST /products`, for admins */
export default class AddProduct extends Plugin {
  #auth
  #http
  #tables

  constructor({ auth, db, http }: ToolsIn<typeof shop>) {
    super()
    this.#auth = auth
    this.#http = http
    this.#tables = shopTables(db)
  }

  override onBoot() {
    this.#http.addEndpoint('/products', 'POST', this.add, {
      authValidator: this.#auth.validateToken,
      guards: [admins],
      body: product,
      query: z.object({}),
    })
  }

  async add({ name, price_cents, available }: z.infer<typeof product>, context: HttpContext) {
    const id = randomUUID()
    await this.#tables.insertInto('products').values({ id, name, price_cents, available }).execute()
    context.setStatus(201)
    return { success: true, data: { id } }
  }
}
