import { plugin } from '#heddle'

const DAY_MS = 24 * 60 * 60 * 1000

/** Counts, every night, the users of the last 24 hours. */
export default plugin(({ config, db, event_bus, logger, scheduler }) => {
  const cron = config.get('USERS_SUMMARY_CRON', { default: '0 3 * * *' })

  scheduler.cron('daily-summary', cron, summarize)

  async function summarize() {
    const nowMs = Date.now()
    const since = new Date(nowMs - DAY_MS).toISOString()
    const until = new Date(nowMs).toISOString()
    const row = await db.queryOne<{ created: number }>(
      'SELECT count(*) AS created FROM users WHERE created_at >= $1 AND created_at < $2',
      [since, until],
    )
    const created = row?.created ?? 0
    logger.info(`${created} new users in 24 hours`, { since, until })
    await event_bus.publish('users.daily_summary', { since, until, created })
  }
})
