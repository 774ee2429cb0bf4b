import { plugin } from '#heddle'

/** A job that says when it fires. */
export default plugin(({ http, logger, scheduler }) => {
  scheduler.every('beat', 200, () => logger.info('beat'))
  http.addEndpoint('/jobs', 'GET', async () => ({ jobs: await scheduler.list() }))
})
