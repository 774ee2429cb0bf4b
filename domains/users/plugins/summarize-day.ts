import { Plugin, type Tools } from '#heddle'

const DAY_MS = 24 * 60 * 60 * 1000

/** Counts, every night, the users of the last 24 hours. */
export default class SummarizeDay extends Plugin {
  #bus
  #db
  #log
  #scheduler
  #cron

  constructor({ config, db, event_bus, logger, scheduler }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
    this.#log = logger
    this.#scheduler = scheduler
    this.#cron = config.get('USERS_SUMMARY_CRON', { default: '0 3 * * *' })
  }

  override onBoot() {
    this.#scheduler.cron('daily-summary', this.#cron, this.summarize)
  }

  async summarize() {
    const nowMs = Date.now()
    const since = new Date(nowMs - DAY_MS).toISOString()
    const until = new Date(nowMs).toISOString()
    const row = await this.#db.queryOne<{ created: number }>(
      'SELECT count(*) AS created FROM users WHERE created_at >= $1 AND created_at < $2',
      [since, until],
    )
    const created = row?.created ?? 0
    this.#log.info(`${created} new users in 24 hours`, { since, until })
    await this.#bus.publish('users.daily_summary', { since, until, created })
  }
}
