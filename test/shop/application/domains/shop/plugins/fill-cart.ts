import { type Data, DbError, HttpError, plugin, type ToolsIn } from 'heddle'
import { z } from 'zod'
import type shop from '../domain.ts'
import { customers, type ForUser } from '../roles.ts'
import { shopTables } from '../tables.ts'

const line = z.object({ quantity: z.int().min(0).max(100) })

/** `PUT /cart/:product`, of which 0 takes it out, and `GET /cart` */
export default plugin(({ auth, db, http }: ToolsIn<typeof shop>) => {
  const tables = shopTables(db)

  const own = { authValidator: auth.validateToken, guards: [customers] }
  http.get('/cart', { ...own, summary: 'The own cart', description: 'With what it costs now.' }, show)
  http.put(
    '/cart/:product',
    {
      ...own,
      summary: 'Put a product into the cart',
      description: 'With its quantity; 0 takes it out.',
      body: line,
      throws: { 404: 'There is no such product' },
    },
    async ({ product, quantity }, context) => {
      const key = { customer_id: context.user.id, product_id: product }
      if (quantity === 0) {
        await tables
          .deleteFrom('cart_lines')
          .where((column) => column.and(key))
          .execute()
      } else {
        const touched = { quantity, touched_at: new Date().toISOString() }
        try {
          await tables
            .insertInto('cart_lines')
            .values({ ...key, ...touched })
            .onConflict((conflict) => conflict.columns(['customer_id', 'product_id']).doUpdateSet(touched))
            .execute()
        } catch (error) {
          if (error instanceof DbError && error.kind === 'foreign_key_violation') {
            throw new HttpError(404, 'There is no such product')
          }
          throw error
        }
      }
      return show({}, context)
    },
  )

  async function show(_data: Data, { user }: ForUser) {
    const lines = await tables
      .selectFrom('cart_lines')
      .innerJoin('products', 'products.id', 'cart_lines.product_id')
      .select(['product_id', 'name', 'quantity', 'price_cents'])
      .where('customer_id', '=', user.id)
      .orderBy('name')
      .execute()
    return { success: true, data: lines }
  }
})
