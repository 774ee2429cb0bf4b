import { type HttpContext, Plugin, type Tools } from '#heddle'
import { type Item, itemSchema } from '../item-schema.ts'

/** A validated body, one insert, one event. */
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
  }

  async create({ name, quantity, note }: Item, context: HttpContext) {
    const inserted = await this.#db.execute<{ id: number }>(
      'INSERT INTO bench_items (name, quantity, note) VALUES ($1, $2, $3) RETURNING id',
      [name, quantity, note ?? null],
    )
    const id = inserted.rows[0]!.id
    await this.#bus.publish('bench.item_created', { id, name })
    context.setStatus(201)
    return { success: true, data: { id } }
  }
}
