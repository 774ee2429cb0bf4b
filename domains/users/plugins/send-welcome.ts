import { type EventMeta, plugin, type Tx } from '#heddle'
import type { UserCreated } from '../events.ts'

/** Welcomes every new user once: an event can come twice, and what its transaction does is done once. */
export default plugin(({ event_bus, logger }) => {
  event_bus.subscribe('user.created', welcome, { transaction: true, retries: 3 })

  async function welcome({ id }: UserCreated, _event: EventMeta, tx: Tx) {
    const now = new Date().toISOString()
    const sql = 'UPDATE users SET welcomed_at = $1 WHERE id = $2 AND welcomed_at IS NULL'
    const { rowCount } = await tx.execute(sql, [now, id])
    // The account is gone already, or another event has told of it.
    if (rowCount === 0) return
    logger.info('Welcomed a new user', { user_id: id })
    // Send the e-mail in a subscriber of this event: no transaction can take it back.
    await tx.publish('welcome.sent', { user_id: id })
  }
})
