import { randomUUID } from 'node:crypto'
import { HttpError, plugin, type ToolsIn } from 'heddle'
import type shop from '../domain.ts'
import { customers } from '../roles.ts'
import { shopTables } from '../tables.ts'

/** `POST /orders`: makes an order of the cart */
export default plugin(({ auth, db, http }: ToolsIn<typeof shop>) => {
  const tables = shopTables(db)

  http.post(
    '/orders',
    {
      authValidator: auth.validateToken,
      guards: [customers],
      idempotency: 'optional',
      status: 201,
      summary: 'Order what is in the cart',
      description: 'Takes it from stock and empties the cart, or changes nothing.',
      throws: { 409: { description: 'The cart is empty, or too much is wanted', code: ['EMPTY', 'SOLD_OUT'] } },
    },
    (_data, context) => {
      const customer_id = context.user.id
      return context.commit(async (tx) => {
        const trx = tables.in(tx)
        const lines = await trx
          .selectFrom('cart_lines')
          .innerJoin('products', 'products.id', 'cart_lines.product_id')
          .select(['product_id', 'quantity', 'price_cents'])
          .where('customer_id', '=', customer_id)
          .orderBy('product_id')
          .execute()
        if (lines.length === 0) throw new HttpError(409, 'The cart is empty', { code: 'EMPTY' })

        const id = randomUUID()
        const total_cents = lines.reduce((sum, { quantity, price_cents }) => sum + quantity * price_cents, 0)
        const order = { id, customer_id, total_cents, status: 'placed', placed_at: new Date().toISOString() }
        await trx.insertInto('orders').values(order).execute()
        for (const { product_id, quantity } of lines) {
          const { numUpdatedRows } = await trx
            .updateTable('products')
            .set((column) => ({ available: column('available', '-', quantity) }))
            .where('id', '=', product_id)
            .where('available', '>=', quantity)
            .executeTakeFirst()
          // What this transaction has written so far goes with it.
          if (numUpdatedRows === 0n) throw new HttpError(409, 'Sold out', { code: 'SOLD_OUT', details: { product_id } })
        }
        await trx
          .insertInto('order_lines')
          .values(lines.map((line) => ({ order_id: id, ...line })))
          .execute()
        await trx.deleteFrom('cart_lines').where('customer_id', '=', customer_id).execute()
        await tx.publish('order.placed', { id, customer_id, total_cents })
        return { success: true, data: { id, total_cents } }
      })
    },
  )
})
