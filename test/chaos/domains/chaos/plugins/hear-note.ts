import { type EventMeta, plugin } from '#heddle'
import type { Noted } from '../events.ts'

/** The end of a chain: writes down that it has heard of a number. */
export default plugin(({ db, event_bus }) => {
  async function hear({ number }: Noted, { id }: EventMeta) {
    await db.execute(
      'INSERT INTO chaos_handled (event_id, event, number) VALUES ($1, $2, $3) ON CONFLICT (event_id) DO NOTHING',
      [id, 'chaos.noted', number],
    )
  }

  event_bus.subscribe('chaos.noted', hear, { retries: 5, backoffMs: 50, timeoutMs: 3000 })
})
