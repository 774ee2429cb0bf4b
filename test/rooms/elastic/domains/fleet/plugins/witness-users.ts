import { type EventMeta, type Payload, plugin } from '#heddle'

/** Writes down each new user that it hears of, as often as it does, and tells of it in turn. */
export default plugin(({ config, db, event_bus }) => {
  const replica = config.get('FLEET_REPLICA', { default: '' })

  async function witness(data: Payload, event: EventMeta): Promise<void> {
    await event_bus.publish('user.witnessed', { id: data.id })
    await note(data, event)
  }

  async function note(_: Payload, { id, event, parent_id, request_id }: EventMeta): Promise<void> {
    await db.execute(
      'INSERT INTO fleet_seen (event_id, event, replica, parent_id, request_id) VALUES ($1, $2, $3, $4, $5)',
      [id, event, replica, parent_id, request_id],
    )
  }

  event_bus.subscribe('user.created', witness)
  event_bus.subscribe('user.witnessed', note)
})
