import { type HttpContext, Plugin, type Tools } from '#heddle'
import { type Item, itemSchema } from '../item-schema.ts'

const INSERT = 'INSERT INTO bench_items (name, quantity, note) VALUES ($1, $2, $3) RETURNING id'

/** A validated body, one insert, one event: one after the other, or in one transaction. */
export default class CreateItem extends Plugin {
  #http
  #db
  #bus

  constructor({ http, db, event_bus }: Tools) {
    super()
    this.#http = http
    this.#db = db
    this.#bus = event_bus
  }

  override async onBoot() {
    this.#http.addEndpoint('/bench/items', 'POST', (data, context) => this.create(data as Item, context), {
      tags: ['bench'],
      body: itemSchema,
    })
    this.#http.addEndpoint('/bench/stored-items', 'POST', (data, context) => this.createStored(data as Item, context), {
      tags: ['bench'],
      body: itemSchema,
    })
  }

  async create({ name, quantity, note }: Item, context: HttpContext) {
    const inserted = await this.#db.execute<{ id: number }>(INSERT, [name, quantity, note ?? null])
    const id = inserted.rows[0]!.id
    await this.#bus.publish('bench.item_created', { id, name })
    context.setStatus(201)
    return { success: true, data: { id } }
  }

  createStored({ name, quantity, note }: Item, context: HttpContext) {
    return context.commit(async (tx) => {
      const inserted = await tx.execute<{ id: number }>(INSERT, [name, quantity, note ?? null])
      const { id } = inserted.rows[0]!
      await tx.publish('bench.item_created', { id, name })
      context.setStatus(201)
      return { success: true, data: { id } }
    })
  }
}
