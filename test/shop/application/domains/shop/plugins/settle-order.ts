import { type EventMeta, type Events, Plugin, type Tools, type Tx } from 'heddle'
import { shopTables } from '../tables.ts'

/** A payment makes an order paid, once, however often the provider tells. */
export default class SettleOrder extends Plugin {
  #bus
  #log
  #tables

  constructor({ db, event_bus, logger }: Tools) {
    super()
    this.#bus = event_bus
    this.#log = logger
    this.#tables = shopTables(db)
  }

  override onBoot() {
    this.#bus.subscribe('payment.received', this.settle, { transaction: true, retries: 5, backoffMs: 100 })
  }

  async settle({ order_id }: Events['payment.received'], _event: EventMeta, tx: Tx) {
    const paid = await this.#tables
      .in(tx)
      .updateTable('orders')
      .set({ status: 'paid' })
      .where('id', '=', order_id)
      .where('status', '=', 'placed')
      .returning(['id', 'customer_id', 'total_cents'])
      .executeTakeFirst()
    if (paid === undefined) return this.#log.info('Nothing to settle', { order_id })
    await tx.publish('order.paid', paid)
  }
}
