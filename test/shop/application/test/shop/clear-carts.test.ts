import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plugin } from 'heddle/testing'
import clearCarts from '../../domains/shop/plugins/clear-carts.ts'

const DAY_MS = 86_400_000

test('every night what nobody has touched for a month leaves the carts', async (t) => {
  const app = await plugin(t, clearCarts, { domain: 'shop' })
  await app.tools.db.execute("INSERT INTO products (id, name, price_cents, available) VALUES ('p', 'Loom', 100, 1)")
  for (const [customer, days] of [
    ['long ago', 31],
    ['lately', 29],
  ] as const) {
    await app.tools.db.execute(
      'INSERT INTO cart_lines (customer_id, product_id, quantity, touched_at) VALUES ($1, $2, 1, $3)',
      [customer, 'p', new Date(Date.now() - days * DAY_MS)],
    )
  }
  await app.runJob('nightly')
  assert.deepEqual(await app.tools.db.query('SELECT customer_id FROM cart_lines'), [{ customer_id: 'lately' }])
})
