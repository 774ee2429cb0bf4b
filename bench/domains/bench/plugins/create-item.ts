import { plugin, type Tx } from '#heddle'
import { type Item, itemSchema } from '../item-schema.ts'

const INSERT = 'INSERT INTO bench_items (name, quantity, note) VALUES ($1, $2, $3) RETURNING id'

/** A validated body, one insert, one event: one after the other, or in one transaction. */
export default plugin(({ http, db, event_bus }) => {
  http.post('/bench/items', { body: itemSchema }, async (item, context) => {
    const id = await insert(db, item)
    await event_bus.publish('bench.item_created', { id, name: item.name })
    context.setStatus(201)
    return { success: true, data: { id } }
  })
  http.post('/bench/stored-items', { body: itemSchema }, (item, context) =>
    context.commit(async (tx) => {
      const id = await insert(tx, item)
      await tx.publish('bench.item_created', { id, name: item.name })
      context.setStatus(201)
      return { success: true, data: { id } }
    }),
  )
})

async function insert(into: Pick<Tx, 'execute'>, { name, quantity, note }: Item): Promise<number> {
  const { rows } = await into.execute<{ id: number }>(INSERT, [name, quantity, note ?? null])
  return rows[0]!.id
}
