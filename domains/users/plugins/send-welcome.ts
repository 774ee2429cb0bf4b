import { Plugin, type Tools } from '#heddle'
import type { UserCreated } from '../events.ts'

/** Welcomes every new user once. An event can come twice, so each welcome is recorded and not repeated. */
export default class SendWelcome extends Plugin {
  #bus
  #db
  #log

  constructor({ db, event_bus, logger }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
    this.#log = logger
  }

  override onBoot() {
    this.#bus.subscribe('user.created', this.welcome, { retries: 3 })
  }

  async welcome({ id }: UserCreated) {
    const user = await this.#db.queryOne<{ welcomed_at: string | null }>(
      'SELECT welcomed_at FROM users WHERE id = $1',
      [id],
    )
    const isDone = user === null || user.welcomed_at !== null
    if (isDone) return
    // Send the e-mail here.
    this.#log.info('Welcomed a new user', { user_id: id })
    await this.#bus.publish('welcome.sent', { user_id: id })
    await this.#db.execute('UPDATE users SET welcomed_at = $1 WHERE id = $2', [new Date().toISOString(), id])
  }
}
