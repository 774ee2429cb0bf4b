import { type EventMeta, type Payload, plugin } from '#heddle'
import { writeSeen } from '../seen.ts'

/** Writes down each new user that it hears of, as often as it does, and tells of it in turn. */
export default plugin(({ config, db, event_bus }) => {
  const replica = config.get('FLEET_REPLICA', { default: '' })

  async function witness(data: Payload, event: EventMeta): Promise<void> {
    await event_bus.publish('user.witnessed', { id: data.id })
    await writeSeen(db, replica, data, event)
  }

  event_bus.subscribe('user.created', witness)
  event_bus.subscribe('user.witnessed', (data, event) => writeSeen(db, replica, data, event))
})
