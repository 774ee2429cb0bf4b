import { type EventMeta, type Payload, plugin, type Tx } from '#heddle'

const { LOG_NAME = '' } = process.env

/** Writes a row for each event, in the handler's transaction. No constraint hides a second one. */
export default plugin(({ event_bus }) => {
  event_bus.subscribe('work', keep, { transaction: true, retries: 3, backoffMs: 5 })

  async function keep(_: Payload, { id }: EventMeta, tx: Tx): Promise<void> {
    await tx.execute('INSERT INTO effects (event_id, process) VALUES ($1, $2)', [id, LOG_NAME])
  }
})
