import { Plugin, type Tools } from 'heddle'

const KEPT_DAYS = 30
const DAY_MS = 86_400_000

/** Every night: what nobody has touched for a month leaves the carts. */
export default class ClearCarts extends Plugin {
  #db
  #log
  #scheduler

  constructor({ db, logger, scheduler }: Tools) {
    super()
    this.#db = db
    this.#log = logger
    this.#scheduler = scheduler
  }

  override onBoot() {
    this.#scheduler.cron('nightly', '0 3 * * *', this.clear, { missed: 'once' })
  }

  async clear() {
    const { rowCount } = await this.#db.execute('DELETE FROM cart_lines WHERE touched_at < $1', [
      new Date(Date.now() - KEPT_DAYS * DAY_MS),
    ])
    this.#log.info('Old lines left the carts', { lines: rowCount })
  }
}
