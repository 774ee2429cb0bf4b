import { randomUUID } from 'node:crypto'
import { plugin, type ToolsIn } from 'heddle'
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
export default plugin(({ auth, db, http }: ToolsIn<typeof shop>) => {
  const tables = shopTables(db)

  http.post(
    '/products',
    {
      authValidator: auth.validateToken,
      guards: [admins],
      body: product,
      status: 201,
      summary: 'Add a product',
      description: 'For the owner of the shop.',
    },
    async ({ name, price_cents, available }) => {
      const id = randomUUID()
      await tables.insertInto('products').values({ id, name, price_cents, available }).execute()
      return { success: true, data: { id } }
    },
  )
})
