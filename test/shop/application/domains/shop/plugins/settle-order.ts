import { type EventMeta, type Events, Plugin, type Tools, type Tx } from 'heddle'

/** A payment makes an order paid, once, however often the provider tells. */
export default class SettleOrder extends Plugin {
  #bus
  #log

  constructor({ event_bus, logger }: Tools) {
    super()
    this.#bus = event_bus
    this.#log = logger
  }

  override onBoot() {
    this.#bus.subscribe('payment.received', this.settle, { transaction: true, retries: 5, backoffMs: 100 })
  }

  async settle({ order_id }: Events['payment.received'], _event: EventMeta, tx: Tx) {
    const { rows } = await tx.execute<{ customer_id: string; total_cents: number }>(
      "UPDATE orders SET status = 'paid' WHERE id = $1 AND status = 'placed' RETURNING customer_id, total_cents",
      [order_id],
    )
    if (rows[0] === undefined) return this.#log.info('Nothing to settle', { order_id })
    await tx.publish('order.paid', { id: order_id, ...rows[0] })
  }
}
