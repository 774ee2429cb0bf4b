import { type EventMeta, Plugin, type Tools, type Tx } from '#heddle'
import { type Order, PATIENT } from '../handling.ts'

/** Bills an order, which must happen once. */
export default class BillOrders extends Plugin {
  constructor({ event_bus }: Tools) {
    super()
    event_bus.subscribe('order.placed', this.bill, { ...PATIENT, transaction: true })
  }

  async bill({ number }: Order, event: EventMeta, tx: Tx) {
    await tx.execute('INSERT INTO billed (event_id, number) VALUES ($1, $2)', [event.id, number])
  }
}
