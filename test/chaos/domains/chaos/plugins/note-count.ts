import { type EventMeta, plugin } from '#heddle'
import type { Counted } from '../events.ts'
import { pause } from '../pause.ts'

/** A handler takes 0 to 15 ms, so that some are always under way when a lane dies. */
const STEPS_MS = 16

/** Writes every number down once, however often its event comes, and says so. */
export default plugin(({ db, event_bus }) => {
  async function note({ number, course }: Counted, { id, attempt }: EventMeta) {
    if (course === 'fails' || (course === 'stumbles' && attempt === 1)) throw new Error(`${number} fails on purpose`)
    if (course === 'hangs' && attempt === 1) return new Promise(() => {})
    await pause(number % STEPS_MS)
    await db.execute(
      'INSERT INTO chaos_handled (event_id, event, number) VALUES ($1, $2, $3) ON CONFLICT (event_id) DO NOTHING',
      [id, 'chaos.counted', number],
    )
    await event_bus.publish('chaos.noted', { number })
  }

  event_bus.subscribe('chaos.counted', note, { retries: 5, backoffMs: 50, timeoutMs: 3000 })
})
