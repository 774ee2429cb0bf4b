import { plugin } from 'heddle'
import { keysetPage } from 'heddle/kysely'
import { z } from 'zod'
import { shopTables } from '../tables.ts'

const filter = z.object({
  search: z.string().max(100).optional(),
  max_cents: z.coerce.number().int().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  after: z.string().optional(),
})

/** `GET /products`, a page after the other: `next` of one is `after` of the next */
export default plugin(({ db, http }) => {
  const tables = shopTables(db)

  const shown = { summary: 'Products', description: 'By name, page by page: `after` is the `next` of the page before.' }
  http.get('/products', { ...shown, query: filter }, async ({ search, max_cents, limit, after }) => {
    let products = tables.selectFrom('products').select(['id', 'name', 'price_cents', 'available'])
    if (search !== undefined) {
      products = products.where((column) => column.fn('lower', ['name']), 'like', `%${search.toLowerCase()}%`)
    }
    if (max_cents !== undefined) products = products.where('price_cents', '<=', max_cents)
    const { rows, next } = await keysetPage(tables, { rows: products, orderBy: ['name', 'id'], limit, after })
    return { success: true, data: rows, next }
  })
})
