import { plugin } from 'heddle'
import { shopTables } from '../tables.ts'

const KEPT_DAYS = 30
const DAY_MS = 86_400_000

/** Every night: what nobody has touched for a month leaves the carts. */
export default plugin(({ db, logger, scheduler }) => {
  const tables = shopTables(db)

  scheduler.cron('nightly', '0 3 * * *', clear, { missed: 'once' })

  async function clear() {
    const oldest = new Date(Date.now() - KEPT_DAYS * DAY_MS).toISOString()
    const { numDeletedRows } = await tables.deleteFrom('cart_lines').where('touched_at', '<', oldest).executeTakeFirst()
    logger.info('Old lines left the carts', { lines: Number(numDeletedRows) })
  }
})
