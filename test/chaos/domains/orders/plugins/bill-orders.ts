import { type EventMeta, plugin, type Tx } from '#heddle'
import { type Order, PATIENT } from '../handling.ts'

/** Bills an order, which must happen once. */
export default plugin(({ event_bus }) => {
  event_bus.subscribe('order.placed', bill, { ...PATIENT, transaction: true })

  async function bill({ number }: Order, event: EventMeta, tx: Tx) {
    await tx.execute('INSERT INTO billed (event_id, number) VALUES ($1, $2)', [event.id, number])
  }
})
