import { type EventMeta, Plugin, type Tools } from '#heddle'
import type { Noted } from '../events.ts'

/** The end of a chain: writes down that it has heard of a number. */
export default class HearNote extends Plugin {
  #bus
  #db

  constructor({ db, event_bus }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
  }

  override onBoot() {
    this.#bus.subscribe('chaos.noted', this.hear, { retries: 5, backoffMs: 50, timeoutMs: 3000 })
  }

  async hear({ number }: Noted, { id }: EventMeta) {
    await this.#db.execute(
      'INSERT INTO chaos_handled (event_id, event, number) VALUES ($1, $2, $3) ON CONFLICT (event_id) DO NOTHING',
      [id, 'chaos.noted', number],
    )
  }
}
