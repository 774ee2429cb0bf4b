import { type EventMeta, type Events, plugin, type Tx } from 'heddle'
import { shopTables } from '../tables.ts'

/** A payment makes an order paid, once, however often the provider tells. */
export default plugin(({ db, event_bus, logger }) => {
  const tables = shopTables(db)

  event_bus.subscribe('payment.received', settle, { transaction: true, retries: 5, backoffMs: 100 })

  async function settle({ order_id }: Events['payment.received'], _event: EventMeta, tx: Tx) {
    const paid = await tables
      .in(tx)
      .updateTable('orders')
      .set({ status: 'paid' })
      .where('id', '=', order_id)
      .where('status', '=', 'placed')
      .returning(['id', 'customer_id', 'total_cents'])
      .executeTakeFirst()
    if (paid === undefined) return logger.info('Nothing to settle', { order_id })
    await tx.publish('order.paid', paid)
  }
})
