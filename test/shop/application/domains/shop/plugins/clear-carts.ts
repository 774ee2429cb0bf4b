import { Plugin, type Tools } from 'heddle'
import { shopTables } from '../tables.ts'

const KEPT_DAYS = 30
const DAY_MS = 86_400_000

/** Every night: what nobody has touched for a month leaves the carts. */
export default class ClearCarts extends Plugin {
  #log
  #scheduler
  #tables

  constructor({ db, logger, scheduler }: Tools) {
    super()
    this.#log = logger
    this.#scheduler = scheduler
    this.#tables = shopTables(db)
  }

  override onBoot() {
    this.#scheduler.cron('nightly', '0 3 * * *', this.clear, { missed: 'once' })
  }

  async clear() {
    const oldest = new Date(Date.now() - KEPT_DAYS * DAY_MS).toISOString()
    const { numDeletedRows } = await this.#tables
      .deleteFrom('cart_lines')
      .where('touched_at', '<', oldest)
      .executeTakeFirst()
    this.#log.info('Old lines left the carts', { lines: Number(numDeletedRows) })
  }
}
